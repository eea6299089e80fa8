"""Names from outside, of models and from users, as C++ takes them: identifiers, and literals in one line."""

from __future__ import annotations

import re

from ..errors import ErrorKind, UsageError

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor xor_eq
"""
"""Those of C++17 and C++20, alternative tokens included."""
_TAKEN = """
    Infer Print Quantized Real RegisterOperators Resolver Start Steps Test Value app_main arena head_arena interpreter
    linux loop main memories planner posix resolver self_test setup std tail_arena temporary tflite tflite_memopt unix
"""
"""Names that the generated programs, their headers, or GCC's macros use in that scope."""
EXTERNAL = "external"
"""The prefix of names of the firmware's own buffers."""
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\?')
"""Bytes that stand for themselves in a literal; two question marks may begin a trigraph."""


def check_namespace(name: str) -> None:
    """Raise UsageError if this cannot name a generated C++ namespace."""
    wrong = _fault_of(name)
    if wrong is not None:
        raise UsageError(f"{name!r} is not a name for a C++ namespace: {wrong}", ErrorKind.NAME)


def check_array(memory: str) -> None:
    """Raises UsageError for a memory that no array of the programs can have the name of."""
    wrong = _fault_of(memory)
    if wrong is None and memory.startswith(EXTERNAL):
        wrong = f"names of external buffers begin with {EXTERNAL}; choose another one"
    if wrong is None and re.match("k[A-Z]", memory):
        wrong = "the generated constants have such names; choose another one"
    if wrong is not None:
        raise UsageError(f"--memory {memory}: {wrong}", ErrorKind.NAME)


def _fault_of(name: str) -> str | None:
    if not _IDENTIFIER.fullmatch(name):
        return "write a letter, then letters, digits and _"
    if name in _KEYWORDS.split():
        return "it is a word of C++ itself; choose another one"
    if "__" in name:
        return "C++ keeps names with two _ in a row for itself; write one"
    if name in _TAKEN.split():
        return f"the program has another '{name}'; choose another one"
    return None


def literal(text: str) -> str:
    """Return a string literal of the text's bytes in UTF-8, in one line of plain ASCII, right in a comment, too."""
    return '"' + "".join(map(_in_literal, text.encode("utf-8", "surrogateescape"))) + '"'


def _in_literal(byte: int) -> str:
    if byte in _PLAIN:
        return chr(byte)
    return f"\\{chr(byte)}" if byte in b'"\\?' else f"\\{byte:03o}"


def identifiers(prefix: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Return a name for each of the texts, which are all different; texts that differ in signs alone are numbered."""
    by_text: dict[str, str] = {}
    for text in texts:
        base = "_".join([prefix, *re.findall(r"[A-Za-z0-9]+", text)])
        name, number = base, 2
        while name in by_text.values():
            name, number = f"{base}_{number}", number + 1
        by_text[text] = name
    return by_text
