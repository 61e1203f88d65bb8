"""What the server may ask about a session's files, by name."""

from . import framing
from .opening import Refused


def serve(workspace, header, body):
    """The header and the body of the answer. A refusal is an answer like any other."""
    operation = _OPERATIONS.get(header["op"])
    if operation is None:
        raise framing.Closed
    reply = {"id": header["id"], "status": 200}
    try:
        more, data = operation(workspace, header, body)
    except Refused as refused:
        return {**reply, "status": refused.status, "reason": refused.reason}, b""
    return {**reply, **more}, data


def _list(workspace, header, _body):
    return {}, framing.encode(workspace.list(header["path"]))


def _tree(workspace, header, _body):
    return {}, framing.encode(workspace.tree(header["path"]))


def _read(workspace, header, _body):
    size, identity, data = workspace.read(header["path"], header["offset"], header["length"])
    return {"size": size, "identity": identity}, data


def _write(workspace, header, body):
    workspace.write(header["upload"], header["offset"], body)
    return {}, b""


def _commit(workspace, header, _body):
    return {"path": workspace.commit(header["upload"], header["path"], header["exclusive"])}, b""


def _save(workspace, header, body):
    return {"path": workspace.save(header["upload"], header["path"], header["exclusive"], body)}, b""


def _discard(workspace, header, _body):
    workspace.discard(header["upload"])
    return {}, b""


_OPERATIONS = {
    "list": _list,
    "tree": _tree,
    "read": _read,
    "write": _write,
    "commit": _commit,
    "save": _save,
    "discard": _discard,
}
