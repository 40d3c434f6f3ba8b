from . import errors as errors
from .core.convert.plan import ConversionPlan as ConversionPlan
from .core.convert.to_numpy import plan as plan
from .core.convert.to_numpy import to_numpy as to_numpy
from .core.exchange.cupy import from_cupy as from_cupy
from .core.exchange.cupy import plan_cupy as plan_cupy
from .core.exchange.cupy import to_cupy as to_cupy
from .core.exchange.jax import from_jax as from_jax
from .core.exchange.jax import plan_jax as plan_jax
from .core.exchange.jax import to_jax as to_jax
from .core.exchange.to_tensor import to_tensor as to_tensor
from .core.memory.aliases import Alias as Alias
from .core.memory.aliases import aliases as aliases
from .core.tensor.facts import TensorInfo as TensorInfo
from .core.tensor.info import inspect as inspect
from .core.tensor.stand_ins import register_kind as register_kind
from .core.tensor.stand_ins import unregister_kind as unregister_kind
from .core.tensor.steps import Step as Step
from .errors import BadRequestError as BadRequestError
from .errors import CopyRequiredError as CopyRequiredError
from .errors import MissingLibraryError as MissingLibraryError
from .errors import NameTakenError as NameTakenError
from .errors import NoDataError as NoDataError
from .errors import NotATensorError as NotATensorError
from .errors import TensornpError as TensornpError
from .errors import TooLargeError as TooLargeError
from .errors import UnsupportedArrayError as UnsupportedArrayError
from .errors import UnsupportedTensorError as UnsupportedTensorError
from .render.static_card import Card as Card
from .render.static_card import card as card
from .widget.toggle import TensorWidget as TensorWidget
from .widget.toggle import view as view

__version__: str

def load_ipython_extension(shell: object) -> None: ...
def unload_ipython_extension(shell: object) -> None: ...
