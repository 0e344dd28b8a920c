"""Which bank and tags a project's memories have, for writing and for finding them.

Owns the three scopings, the names of banks that are one project's, and the filter that keeps projects apart. Pure: it
must not know git, files, HTTP or the environment; a project and settings come in, banks and tags go out.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from bankclient.errors import InvalidInput
from bankclient.names import BANK_NAME_MAX_BYTES, bank_name_problem
from bankclient.project import clean_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bankclient.project import Project

__all__ = [
    "NO_PROJECT_TAG",
    "PROJECT_TAG_START",
    "Scope",
    "ScopeSettings",
    "Scoping",
    "Target",
    "check_bank",
    "escape_bank",
    "recall_filter",
    "scope_of",
]

PROJECT_TAG_START = "project:"
"""What a tag begins with that names a project; no other tag of a memory may."""
NO_PROJECT_TAG = PROJECT_TAG_START + "(UNRESOLVED)"
"""A tag that nothing bears, since a project's name has no capitals: asked for with `any` it finds the untagged only."""

Scoping: TypeAlias = Literal["global", "per-project", "per-project-tagged"]
"""What keeps projects apart: nothing, a bank for each, or tags in one bank."""

_ESCAPED = re.compile("[%/\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CUT_ESCAPE = re.compile("%[0-9A-F]?$")
_DIGEST_MARK = "%23"  # '#' is never escaped, so that no name in full has this
_DIGEST_DIGITS = 32


class ScopeSettings(Protocol):
    """What decides a scope: these of the settings, or of those that a message was captured under."""

    @property
    def bank_id(self) -> str:
        """The bank's name, or what it begins with."""
        ...

    @property
    def bank_id_prefix(self) -> str | None:
        """What is put before it."""
        ...

    @property
    def scoping(self) -> Scoping:
        """What keeps projects apart."""
        ...

    @property
    def project(self) -> str | None:
        """The project's name, where it is not to be the one that its folder says."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A bank with the tags that go with it: those a memory gets, or those a recall asks for and how they match."""

    bank: str
    tags: tuple[str, ...] = ()
    tags_match: str = "any"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where one project's memories go and where they are looked for.

    `project` bears the name that counts. `bank` and `retain_tags` are the project's own, `global_bank` holds what is
    true everywhere. `recall` is what to ask, the project's own first. `resolved` is false where memories of a project
    would have to be filed under a name that is not known; with scoping `global` that is never so.
    """

    project: Project
    bank: str
    retain_tags: tuple[str, ...]
    recall: tuple[Target, ...]
    global_bank: str
    resolved: bool

    def retain_target(self, scope: Literal["project", "global"] = "project") -> Target:
        """Return where a memory goes that counts for this project, or everywhere.

        Raises `InvalidInput` for one that counts for an unresolved project, and for another word.
        """
        if scope not in {"project", "global"}:
            raise InvalidInput(f"scope is {scope!r:.40}: give 'project' or 'global'")
        if scope == "global":
            return Target(self.global_bank)
        if not self.resolved:
            raise InvalidInput(
                f"nothing can be filed under a project that has no name ({self.project.how}): use scope=global,"
                " or name the project with HINDSIGHT_PROJECT or a [[project]] rule"
            )
        return Target(self.bank, self.retain_tags)


def scope_of(settings: ScopeSettings, project: Project) -> Scope:
    """Return the scope of `project` under the settings' bank, prefix, scoping and name.

    With `per-project-tagged` untagged memories are the global ones. With `per-project` the global bank is asked for the
    untagged ones too, and for this project's from a time of other scoping, never for those tagged as another's.
    Raises `InvalidInput` where bank and prefix make a name that no server takes.
    """
    if settings.project and (name := clean_name(settings.project)):
        project = replace(project, name=name, how="named by HINDSIGHT_PROJECT or a [[project]] rule")
    base = check_bank(_joined(settings.bank_id, settings.bank_id_prefix))
    if settings.scoping == "global":
        return Scope(project, base, (), (Target(base),), base, resolved=True)
    if project.name is None:
        return Scope(project, base, (), (Target(base, (NO_PROJECT_TAG,)),), base, resolved=False)
    shared = Target(base, (PROJECT_TAG_START + project.name,))
    if settings.scoping == "per-project":
        own = Target(escape_bank(settings.bank_id, project.name, settings.bank_id_prefix))
        return Scope(project, own.bank, own.tags, (own, shared), base, resolved=True)
    return Scope(project, base, shared.tags, (shared,), base, resolved=True)


def check_bank(name: str) -> str:
    """Return `name`; raise `InvalidInput`, with the mend, if the server would create no bank of that name."""
    problem = bank_name_problem(name)
    if problem:
        raise InvalidInput(f"bank {name!r}: {problem}")
    return name


def escape_bank(base: str, project: str, prefix: str | None) -> str:
    """Return the name of a project's own bank, `base-project` with the prefix in front: one for each pair of names.

    What the server does not take (`/`, control characters, a `_` in front) and `%` stand in percent form. Where the
    base with its prefix has a `-` of its own, the joint is `%2D`: so "a" with "b-c" is `a-b-c`, "a-b" with "c" is
    `a-b%2Dc`. A name of more than 192 bytes is cut and ends in `%23` and a hash. Only a base given in such a form, with
    another scoping, can be the same bank: a base is what a person typed.
    """
    start = _joined(base, prefix)
    name = _escape(start) + ("%2D" if "-" in start else "-") + _escape(project)
    if name.startswith("_"):
        name = "%5F" + name[1:]
    data = name.encode()
    if len(data) <= BANK_NAME_MAX_BYTES:
        return name
    ending = _DIGEST_MARK + hashlib.sha256(data).hexdigest()[:_DIGEST_DIGITS]
    kept = data[: BANK_NAME_MAX_BYTES - len(ending)].decode(errors="ignore")
    return _CUT_ESCAPE.sub("", kept) + ending


def recall_filter(target: Target, tags: Sequence[str] | str = (), tags_match: str | None = None) -> dict[str, object]:
    """Return the request's fields that find what `target` may find and what the caller's own tags ask for.

    Never another project's memories, whatever the caller's tags and mode say:

    - without own tags, the target's tags, with the caller's mode if given;
    - with own tags, both must match: the project's (untagged memories too, unless the mode is a strict one) and the
      caller's, by the caller's mode or else `any_strict`;
    - `exact` asks for memories that have all the target's tags, all the caller's, and no other.

    A target without tags is a whole bank, and the caller's tags and mode pass as they are. That includes a strict mode
    without tags, in which the server finds *everything* (and `exact` without tags, which finds the untagged).
    """
    own = [tags] if isinstance(tags, str) else list(tags)
    both = list(dict.fromkeys([*target.tags, *own]))
    if not both:
        return {} if tags_match is None else {"tags": [], "tags_match": tags_match}
    if not own:
        return {"tags": both, "tags_match": tags_match or target.tags_match}
    mode = tags_match or "any_strict"
    if mode == "exact" or not target.tags:
        return {"tags": both, "tags_match": mode}
    project = {"tags": list(target.tags), "match": "any_strict" if tags_match and "strict" in tags_match else "any"}
    return {"tag_groups": [project, {"tags": own, "match": mode}]}


def _joined(base: str, prefix: str | None) -> str:
    return f"{prefix}-{base}" if prefix else base


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode(errors="surrogatepass")), text)
