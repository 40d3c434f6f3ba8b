"""`%tonumpy`, `%%tonumpy` and `%totensor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    line_cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
    output_can_be_silenced,
)
from IPython.display import display

from tensornp.fronts.ipython.arguments import as_usage_errors, evaluated
from tensornp.fronts.ipython.cell import compile_body, run
from tensornp.fronts.ipython.config import SessionMagics
from tensornp.fronts.ipython.names import check_identifier

if TYPE_CHECKING:
    from tensornp.core.convert.plan import ConversionPlan

OPTIONS = {"tonumpy": "view,v share,s copy,c dtype,d= out,o= explain", "totensor": "out,o="}


@magics_class
class TensorMagics(SessionMagics):
    """The magics of one shell that convert."""

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def tonumpy(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """Convert a tensor, or a container of tensors, to NumPy, and show the receipt.

        Usage::

            %tonumpy [-v | -s | -c] [-d D] [-o NAME] [--explain] EXPR
            %%tonumpy [the same options] [NAME ...]    run the cell, then convert NAME or its last line

        Options, before the expression::

            -v, --view      share memory, read-only (the default; see %config TensorDisplay.mode)
            -s, --share     share memory, writeable; an error if that is impossible
            -c, --copy      always copy
            -d, --dtype D   convert to D: float32, bfloat16, float8_e4m3fn, ...
            -o, --out NAME  bind the array to NAME
            --explain       print the receipt and convert nothing

        Example: ``a = %tonumpy model.fc.weight``
        """
        __tracebackhide__ = True
        options, rest = self._split(line, OPTIONS["tonumpy"])
        arguments, is_quiet = self._arguments(options), rest.endswith(";")
        if cell is None:
            value = evaluated(self.shell, rest, local_ns, "%tonumpy [options] EXPR")
            expression = rest.rstrip("; ")
        else:
            names = rest.removesuffix(";").split()
            with as_usage_errors():
                for name in names:
                    check_identifier(name)
            body = compile_body(self.shell, cell)
            value = self._wanted(names, run(self.shell, body))
            expression = names[0] if len(names) == 1 else body.expression
            is_quiet = is_quiet or body.is_quiet
        with as_usage_errors():
            array = self._converted(value, options, arguments, expression, is_quiet=is_quiet)
        return None if is_quiet else array

    @no_var_expand
    @needs_local_scope
    @output_can_be_silenced
    @line_magic
    def totensor(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Convert a NumPy array to a tensor, and say whether memory is shared.

        Read-only arrays are copied, because torch has no read-only tensors.

        Usage::

            %totensor [-o NAME] EXPR

        Options, before the expression::

            -o, --out NAME  bind the tensor to NAME

        Example::

            t = %totensor a
        """
        from tensornp.core.convert.to_tensor import to_tensor, why_copied
        from tensornp.core.lowlevel.attributes import is_array, is_tensor
        from tensornp.core.tensor.containers import is_container, leaves
        from tensornp.render.layout.document import displayed
        from tensornp.render.tensor.receipt import way_back_document

        __tracebackhide__ = True
        options, rest = self._split(line, OPTIONS["totensor"])
        value = evaluated(self.shell, rest, local_ns, "%totensor [-o NAME] EXPR")
        with as_usage_errors():
            tensor = to_tensor(value)
            if is_container(value) and not any(is_tensor(leaf) for _, leaf in leaves(tensor)):
                raise UsageError(f"there is no array in this {type(value).__name__}")
            if is_array(value) and not rest.endswith(";"):
                display(displayed("the receipt", lambda: way_back_document(why_copied(value), value.nbytes)), raw=True)
            return self._bound(options, tensor)

    def _arguments(self, options: dict[str, str]) -> dict[str, Any]:
        from tensornp.core.convert.plan import MODES

        modes = [mode for mode in ("view", "share", "copy") if mode in options]
        if len(modes) > 1:
            raise UsageError(f"--{modes[0]} and --{modes[1]} exclude each other; choose one")
        mode = modes[0] if modes else self._display.options.mode
        limit = self._display.options.max_nbytes or None
        return {**MODES[mode], "dtype": options.get("dtype"), "max_nbytes": limit}

    def _converted(
        self, value: Any, options: dict[str, str], arguments: dict[str, Any], expression: str, *, is_quiet: bool
    ) -> Any:
        from tensornp.core.convert.budget import Budget
        from tensornp.core.convert.to_numpy import plan, plan_from, to_numpy
        from tensornp.core.lowlevel.attributes import is_tensor
        from tensornp.core.lowlevel.modes import outside_modes
        from tensornp.core.summary.card import looked_at
        from tensornp.core.tensor.containers import is_container, map_leaves
        from tensornp.core.tensor.dtypes import name_of
        from tensornp.core.tensor.info import inspect
        from tensornp.core.tensor.stand_ins import is_tensor_like
        from tensornp.render.layout.document import bundle
        from tensornp.render.tensor.receipt import receipt_html, receipt_text, receipts_text

        receipts: list[ConversionPlan] = []
        dtype = ""
        if is_tensor(value):
            # With the operations that saved it for backward.
            seen = looked_at(value, inspect(value), self._ledger.surroundings_of)[0]
            limits = dict(arguments)
            budget = Budget(limits.pop("max_nbytes"))
            receipts, dtype = [plan_from(seen, budget, **limits)], name_of(seen.dtype)
        else:
            map_leaves(lambda leaf: receipts.append(plan(leaf, **arguments)), value, is_tensor_like)
        if not receipts and (is_container(value) or "explain" in options):
            if not is_container(value):
                # Its error names the cure.
                to_numpy(value, **arguments)
            raise UsageError(f"there is no tensor in this {type(value).__name__}")
        if "explain" in options:
            print(_explained(value, receipts, expression))
            return None
        array = to_numpy(value, **arguments)
        if is_tensor(value):
            with outside_modes():
                self._ledger.note_conversion(value, array)
        if receipts and not is_quiet and is_container(value):
            print(receipts_text(receipts))
        elif receipts and not is_quiet:
            said = receipts[0], expression, options.get("out", ""), dtype
            display(bundle("the receipt", lambda: receipt_text(*said), lambda: receipt_html(*said)), raw=True)
        return self._bound(options, array)

    def _bound(self, options: dict[str, str], value: Any) -> Any:
        """Bind `value` if ``-o`` says so, which then shows nothing; else return it."""
        if "out" not in options:
            return value
        self.shell.push({options["out"]: value})
        return None

    def _wanted(self, names: list[str], last: Any) -> Any:
        """Return the variables of a finished cell (several as a dict), or its value."""
        namespace = self.shell.user_ns
        missing = [name for name in names if name not in namespace]
        if missing:
            raise UsageError(f"the cell has run, but there is no variable {missing[0]!r}")
        if len(names) > 1:
            return {name: namespace[name] for name in names}
        if names:
            return namespace[names[0]]
        if last is None:
            raise UsageError("the cell has run, but its last line has no value; name the variables to convert")
        return last


def _explained(value: Any, receipts: list[ConversionPlan], expression: str) -> str:
    """Return the plan of a tensor, or of each tensor in a container, as text."""
    from tensornp.core.tensor.containers import leaves
    from tensornp.core.tensor.paths import expression_of
    from tensornp.core.tensor.stand_ins import is_tensor_like
    from tensornp.render.tensor.receipt import explained_text

    names = [expression_of(path) for path, leaf in leaves(value) if is_tensor_like(leaf)]
    if len(names) != len(receipts):
        # No walk reads some mappings, and a container in several places is converted once.
        names = [f"tensor {i}" for i in range(len(receipts))]
    return explained_text(zip(names, receipts, strict=True), expression)
