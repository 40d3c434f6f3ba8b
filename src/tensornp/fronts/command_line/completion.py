"""What completes the command in three shells, made of its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tensornp.fronts.command_line.arguments import COMMANDS

_BASH = """_tensornp() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words="" files=y IFS=$'\\n'
    case $before in
{cases}
    *)  case $word in
        -*) words="{options}" files= ;;
        *)  [[ $COMP_CWORD == 1 ]] && words="{commands}" ;;
        esac ;;
    esac
    COMPREPLY=($(IFS=' '; compgen -W "$words" -- "$word"; [[ $files ]] && compgen -f -- "$word"))
}}
complete -o filenames -o default -F _tensornp tensornp"""
_ZSH = """#compdef tensornp
_tensornp_words() {{
    local -a commands=({commands})
    (( CURRENT == 2 )) && _describe command commands
    _files
}}
_tensornp() {{
    _arguments {arguments} '*:PATH:_tensornp_words'
}}
if [ "$funcstack[1]" = _tensornp ]; then _tensornp "$@"; else compdef _tensornp tensornp; fi"""


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script that completes the command in a shell, which evaluates it at its start."""
    return "\n".join({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](parser))


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs != 0


def _bash(parser: argparse.ArgumentParser) -> Iterator[str]:
    options = _options(parser)
    cases = [
        f'    {"|".join(one.option_strings)}) words="{" ".join(one.choices or ())}" files={"y" * _is_file(one)} ;;'
        for one in options
        if _takes_value(one)
    ]
    every = " ".join(flag for one in options for flag in one.option_strings)
    yield _BASH.format(cases="\n".join(cases), options=every, commands=" ".join(COMMANDS))


def _zsh(parser: argparse.ArgumentParser) -> Iterator[str]:
    arguments = []
    for one in _options(parser):
        values = f"({' '.join(one.choices)})" if one.choices else "_files" if _is_file(one) else " "
        value = f":{one.metavar}:{values}" if _takes_value(one) else ""
        arguments += [f"'{flag}[{one.help}]{value}'" for flag in one.option_strings]
    commands = " ".join(f"'{name}:{said}'" for name, said in COMMANDS.items())
    yield _ZSH.format(commands=commands, arguments=" ".join(arguments))


def _fish(parser: argparse.ArgumentParser) -> Iterator[str]:
    for name, said in COMMANDS.items():
        yield f"complete -c tensornp -n __fish_is_first_arg -a {name} -d '{said}'"
    for one in _options(parser):
        flags = " ".join(f"-{'l' if flag.startswith('--') else 's'} {flag.lstrip('-')}" for flag in one.option_strings)
        values = f" -x -a '{' '.join(one.choices)}'" if one.choices else " -r -F" if _is_file(one) else " -x"
        yield f"complete -c tensornp {flags} -d '{one.help}'{values if _takes_value(one) else ''}"


def _is_file(action: argparse.Action) -> bool:
    return action.metavar == "FILE"
