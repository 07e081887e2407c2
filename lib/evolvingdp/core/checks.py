"""Argument checks that name the parameter, its value and what would work.  All are written so that nan fails."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import os
from collections.abc import Callable, Sized
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

C = TypeVar("C", bound=Callable[..., Any])


_COMMON = ("builtins", "numpy", "random", "pandas", "scipy")  # whose other classes are no generators


class ParameterError(ValueError):
    """A parameter that cannot be used; the message is one line that names it, its value and what would work."""


def plain(what: C) -> C:
    """A function, or a class with its class methods, to which numpy's numbers arrive as Python's: e^89 is no float32. Of a
    class `draws`, too."""
    if isinstance(what, type):
        setattr(what, "__init__", plain(what.__dict__["__init__"]))  # noqa: B010 (mypy allows no assignment)
        for name, made in list(vars(what).items()):
            if isinstance(made, classmethod):
                setattr(what, name, classmethod(plain(made.__func__)))
        return draws(what)

    @functools.wraps(what)
    def called(*args: Any, **kwargs: Any) -> Any:
        return what(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    return called  # type: ignore[return-value]


def draws(what: C) -> C:
    """A function, or a class with its public methods, that takes nothing but generators where its annotations say so."""
    if isinstance(what, type):
        for name, made in list(vars(what).items()):
            if name[0] != "_" and isinstance(made, classmethod):
                setattr(what, name, classmethod(draws(made.__func__)))
            elif name[0] != "_" and inspect.isfunction(made):
                setattr(what, name, draws(made))
        return what
    own = inspect.unwrap(what)
    kinds = {name: kind for name, kind in own.__annotations__.items() if name != "return"}
    places = [(own.__code__.co_varnames.index(name), name) for name, kind in kinds.items() if kind.endswith("Generator")]

    @functools.wraps(what)
    def called(*args: Any, **kwargs: Any) -> Any:
        for place, name in places:
            given = args[place] if place < len(args) else kwargs.get(name, _generator)
            if type(given) is not np.random.Generator and given is not _generator:
                _generator(name, given)
        return what(*args, **kwargs)

    return called if places else what  # type: ignore[return-value]


def _generator(name: str, given: Any) -> None:
    """Raise TypeError for what is no generator, nor of a class that somebody made to stand for one."""
    common = callable(given) or type(given).__module__.partition(".")[0] in _COMMON
    if common and not isinstance(given, np.random.Generator):
        got = " ".join(repr(given).split())
        raise TypeError(f"{name} must be a numpy.random.Generator, e.g. numpy.random.default_rng(), got {got:.60}")


def _plain(value: Any) -> Any:
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.integer) or (isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "iuf"):
        return value.item()
    return value


def finite(**values: float) -> None:
    """Raise TypeError unless every value is one real number, ValueError unless it is finite."""
    for name, value in values.items():
        _number(name, value, "that is finite")
        if not math.isfinite(_float(value)):
            raise ValueError(f"{name} must be finite, got {value!r}")


def state(given: Any, kind: type, settings: Any = None) -> None:
    """Raise unless `given` is a state of this `kind`, and carries these very `settings`, where they are given: what a state
    counts, and its noise, are paid for by the settings that started it."""
    if type(given) is not kind:
        raise TypeError(f"state must be a {kind.__qualname__} of {kind.__module__}, as start returns, got {type(given)!r}")
    if settings is not None and (own := getattr(given, "settings", None)) != settings:
        raise ValueError(f"state must be one of {settings!r}, got one of {own!r}")


def number(**values: Any) -> None:
    """Raise TypeError unless every value is one real number, of Python's or of numpy's types."""
    for name, value in values.items():
        if not isinstance(value, np.bool_):
            _number(name, value)


def positive(**values: float) -> None:
    """Raise TypeError unless every value is one number, ValueError unless it is finite and > 0."""
    for name, value in values.items():
        if type(value) is float and 0 < value < math.inf:  # nearly always
            continue
        _number(name, value, "> 0 and finite")
        if not 0 < _float(value) < math.inf:  # "not <" also catches nan
            raise ValueError(f"{name} must be > 0 and finite, got {value!r}")


def probability(**values: float) -> None:
    """Raise TypeError unless every value is one number, ValueError unless it lies strictly between 0 and 1."""
    for name, value in values.items():
        _number(name, value, "in (0, 1)")
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie in (0, 1), got {value!r}")


def integer_at_least(minimum: int, **values: Any) -> None:
    """Raise TypeError for a value that is no integer (a bool is none), ValueError for one below `minimum`."""
    for name, value in values.items():
        if type(value) is int and value >= minimum:  # nearly always
            continue
        try:
            if isinstance(value, bool | np.bool_):
                raise TypeError
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}") from None
        if number < minimum:
            raise ValueError(f"{name} must be >= {minimum}, got {value!r}")


def plain_integers(frozen: Any, *names: str) -> None:
    """Make the fields `names` of a frozen dataclass Python's integers: numpy's wrap, and have no bit_length."""
    for name in names:
        object.__setattr__(frozen, name, operator.index(getattr(frozen, name)))


def power_of_two(**values: Any) -> None:
    """Raise ValueError unless every value is 1, 2, 4, 8, ...; the message names the powers on both sides."""
    integer_at_least(1, **values)
    for name, value in values.items():
        if value & (value - 1):
            below = 1 << (int(value).bit_length() - 1)
            raise ValueError(f"{name} must be a power of two, got {value}; {below} or {2 * below} would work")


def one_of(allowed: tuple[str, ...], **values: str) -> None:
    """Raise ValueError unless every value is one of `allowed`."""
    for name, value in values.items():
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def signs(value: ArrayLike, name: str = "x") -> NDArray[np.signedinteger[Any]]:
    """`value` as signed integers of its shape; raises TypeError for other types, ValueError for what is not +1 or -1."""
    array = np.asarray(value)
    if array.dtype.kind != "i":
        raise TypeError(f"{name} must be an array of signed integers, +1 or -1, got {array.dtype} {array.shape}")
    if not (wrong := np.abs(array) != 1).any():
        return array
    raise ValueError(f"{name} must hold +1 or -1, got {array[wrong].flat[0]} at position {int(wrong.argmax())}")


def shares(**values: ArrayLike) -> None:
    """Raise ValueError unless every entry lies in [0, 1]."""
    for name, value in values.items():
        array = np.asarray(value, dtype=float)
        if not (inside := (array >= 0) & (array <= 1)).all():
            wrong = int((~inside).argmax())
            raise ValueError(f"{name} must lie in [0, 1], got {array.flat[wrong]} at position {wrong}")


def counts(**values: ArrayLike) -> None:
    """Raise unless each array has one dimension and holds integers >= 0 whose sum is below 2^53, where doubles are exact."""
    for name, value in values.items():
        array = np.asarray(value)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"{name} must be a one-dimensional array of integers, got {array.dtype} {array.shape}")
        if array.size and array.min() < 0:
            raise ValueError(f"{name} must hold counts >= 0, got {array.min()} at position {array.argmin()}")
        if array.sum(dtype=float) >= 2.0**53:
            raise ValueError(f"{name} must sum to less than 2^53, got {array.max()} at position {array.argmax()}")


def keys(value: ArrayLike, name: str = "keys") -> NDArray[np.uint64]:
    """`value` as uint64 (n,); raises TypeError for what are no integers, ValueError for the first negative one."""
    array = np.asarray(value)
    if not array.size and array.ndim == 1:
        return np.zeros(0, dtype=np.uint64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a one-dimensional array of integers below 2^64, got {array.dtype} {array.shape}")
    if array.dtype.kind == "i" and array.min() < 0:
        raise ValueError(f"{name} must be >= 0, got {array.min()} at position {array.argmin()}")
    return array.astype(np.uint64, copy=False)


def one_each(**values: Sized) -> None:
    """Raise ValueError unless all have one length: a shorter one must not be repeated."""
    if len({len(value) for value in values.values()}) > 1:
        lengths = ", ".join(f"{len(value)}" for value in values.values())
        raise ValueError(f"{', '.join(values)} must have one entry per report, got {lengths}")


def counts_of_keys(held: ArrayLike, keys: Sized) -> NDArray[np.int64]:
    """The counts `held` as int64 (n,), one for each of `keys`; raises as `counts` does, and for another length."""
    counts(counts=held)
    array = np.asarray(held)
    if len(array) != len(keys):
        raise ValueError(f"counts must have one entry per key, got {len(array)} for {len(keys)} keys")
    return array.astype(np.int64, copy=False)


def plain_array(value: ArrayLike) -> NDArray[Any]:
    """`value` as an array; Python's own numbers, which nullable columns of pandas turn into, as numpy's."""
    array = np.asarray(value)
    return np.array(array.tolist()) if array.dtype == object and all(isinstance(one, Real) for one in array.flat) else array


def integer_array(name: str, value: ArrayLike, *, low: int = 0, below: int, entries: int | None = None) -> NDArray[np.int64]:
    """`value` as int64 (n,), each entry in [low, below), of so many `entries`; raises with the first offending entry."""
    array = plain_array(value)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a one-dimensional array of integers, got {array.dtype} {array.shape}")
    _of_users(name, array, entries)
    if array.size and (array.min() < low or array.max() >= below):
        position = int(np.argmax((array < low) | (array >= below)))
        raise ValueError(f"{name} must lie in [{low}, {below}), got {array[position]} at position {position}")
    return array.astype(np.int64, copy=False)


def query_values(name: str, value: ArrayLike, n_users: int, *, binary: bool) -> NDArray[Any]:
    """`value` (n_users,): bool where `binary`, from {0, 1}, else float from [0, 1]; raises with the first offending user."""
    array = plain_array(value)
    _of_users("data", array, n_users)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must have values that are numbers, got {array.dtype} {array.shape}")
    made = array == 1 if binary else np.asarray(array, dtype=float)
    good = made | (array == 0) if binary else (made >= 0) & (made <= 1)
    if not good.all():
        user, range_ = int(np.argmin(good)), "{0, 1}" if binary else "[0, 1]"
        raise ValueError(f"{name} must have values in {range_}, got {array[user].item()!r} for user {user}")
    return made


def _of_users(name: str, array: NDArray[Any], entries: int | None) -> None:
    if entries is not None and array.shape != (entries,):
        raise ValueError(f"{name} must hold {entries} users in every step, as at the start, got shape {array.shape}")


def fits_in_memory(what: str, needed: float, advice: str) -> None:
    """Raise ValueError when `needed` bytes are more than half of this machine's memory."""
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2 if hasattr(os, "sysconf") else float("inf")
    if not needed <= limit:
        raise ValueError(f"{what} needs {_gigabytes(needed)}, at most {_gigabytes(limit)} fit here: {advice}")


def _number(name: str, value: Any, wanted: str = "") -> None:
    """Raise TypeError for what is no real number; an array of no dimension counts as one."""
    if isinstance(value, np.ndarray):
        if value.ndim or value.dtype.kind not in "iuf":
            raise TypeError(f"{name} must be {f'one number {wanted}'.rstrip()}, got an array of {value.dtype} {value.shape}")
    elif not isinstance(value, Real) or (wanted and isinstance(value, bool)):
        raise TypeError(f"{name} must be {f'a number {wanted}'.rstrip()}, got {value!r}")


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer that no float holds
        return math.inf


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
