"""How the names of files of weights end: by which they are suggested and completed, and never how they are read."""

WEIGHT_SUFFIXES = (
    ".safetensors", ".safetensors.index.json", ".pt", ".pth", ".bin", ".bin.index.json", ".ckpt", ".npy", ".npz",
    ".gguf",
)  # fmt: skip
SUFFIX = ".safetensors"
TORCH_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
"""By which nothing is decided: a file is read as what it begins as."""
