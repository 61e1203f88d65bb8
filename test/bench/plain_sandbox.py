"""The reference of `npm run bench -- sandbox`: code-execution protocol v1 with the standard library and nothing more.

A fresh interpreter a session, one user, no isolation, no limits but time and output. A call does what one of the bundled
backend does, in the plainest way that is quick: output is taken from the process and not from Python, bounded, and the files
that a call made are named. Whatever keeps sessions apart is what the bundled backend is measured for.
"""

import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MOST_OUTPUT = 1 << 20
WORKER = """
import ast, json, os, sys, traceback
variables = {"__name__": "__main__"}
control = int(sys.argv[1])
for line in os.fdopen(control, "rb", closefd=False):
    code = 0
    try:
        tree = ast.parse(json.loads(line))
        shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), variables)
        if shown is not None:
            exec(compile(ast.Interactive([shown]), "<cell>", "single"), variables)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(control, bytes([code]))
"""

sessions = {}


class Session:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="plain-")
        self.before = {}
        self.seen = {}
        self.control, theirs = socket.socketpair()
        self.worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(theirs.fileno())],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self.streams = [self.worker.stdout.fileno(), self.worker.stderr.fileno()]
        for fd in self.streams:
            os.set_blocking(fd, False)

    def python(self, code, timeout):
        self.control.sendall(json.dumps(code).encode() + b"\n")
        output = {fd: bytearray() for fd in self.streams}
        deadline = time.monotonic() + timeout
        poller = select.poll()
        for fd in (self.control.fileno(), *self.streams):
            poller.register(fd, select.POLLIN)
        result = None
        while result is None:
            events = poller.poll(max(0, deadline - time.monotonic()) * 1000)
            if not events:
                self.worker.send_signal(signal.SIGINT)
                deadline += 1
            for fd, _ in events:
                if fd in output:
                    self.take(fd, output[fd])
                else:
                    result = self.control.recv(1)[0]
        for fd in self.streams:
            while self.take(fd, output[fd]):
                pass
        return *(bytes(output[fd]).decode("utf-8", "replace") for fd in self.streams), result

    def take(self, fd, into):
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        into += data[: max(0, MOST_OUTPUT - len(into))]
        return bool(data)

    def made(self):
        """Files that are new or changed since the last call."""
        now = {}
        for entry in os.scandir(self.folder):
            status = entry.stat(follow_symlinks=False)
            if entry.is_file(follow_symlinks=False):
                now[entry.name] = (status.st_ino, status.st_size, status.st_mtime_ns)
        made = [name for name, written in now.items() if self.seen.get(name) != written]
        self.seen = now
        return made

    def shell(self, command, timeout):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, timeout=timeout)
        return done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"), done.returncode

    def edit(self, edit):
        path = self.path(edit["path"])
        if edit["command"] == "view":
            with open(path, encoding="utf-8") as file:
                return file.read(), "", 0
        if edit["command"] == "create":
            self.write(path, edit["file_text"])
            return "created\n", "", 0
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if edit["command"] == "str_replace":
            if text.count(edit["old_str"]) != 1:
                return "", "old_str must occur once\n", 1
            self.before[path] = text
            self.write(path, text.replace(edit["old_str"], edit["new_str"]))
        elif edit["command"] == "insert":
            self.before[path] = text
            lines = text.splitlines(keepends=True)
            lines.insert(edit["insert_line"], edit["new_str"] + "\n")
            self.write(path, "".join(lines))
        else:
            self.write(path, self.before.pop(path, text))
        return "done\n", "", 0

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def path(self, path):
        full = os.path.realpath(os.path.join(self.folder, path))
        if not (full + "/").startswith(self.folder + "/"):
            raise PermissionError(path)
        return full

    def end(self):
        self.worker.kill()
        self.worker.wait()
        self.control.close()
        self.worker.stdout.close()
        self.worker.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024

    def do_POST(self):
        parts = urlsplit(self.path).path.split("/")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if len(parts) == 2:
            session = secrets.token_hex(16)
            sessions[session] = Session()
            self.answer(201, {"session_id": session})
        elif parts[3] == "exec":
            self.execute(sessions[parts[2]], json.loads(body))
        else:
            self.put(sessions[parts[2]], body)

    def execute(self, session, call):
        tool, given, timeout = call["tool"], call["input"], call.get("timeout_seconds", 30)
        if tool == "code_execution":
            out, err, code = session.python(given["code"], timeout)
        elif tool == "bash_code_execution":
            out, err, code = session.shell(given["command"], timeout)
        else:
            out, err, code = session.edit(given)
        use = call.get("tool_use_id") or secrets.token_hex(12)
        files = [{"type": "code_execution_output", "file_id": name, "filename": name} for name in session.made()]
        content = {"type": "code_execution_result", "stdout": out, "stderr": err, "return_code": code, "content": files}
        block = {"type": f"{tool}_tool_result", "tool_use_id": use, "content": content}
        self.answer(200, {"tool_use_id": use, "result_block": block})

    def put(self, session, body):
        boundary = self.headers["content-type"].split("boundary=")[1].strip('"').encode()
        path, data = "upload", b""
        for part in body.split(b"--" + boundary)[1:-1]:
            head, _, content = part.partition(b"\r\n\r\n")
            if b'name="file"' in head:
                data = content[:-2]
            else:
                path = content[:-2].decode()
        with open(session.path(path), "wb") as file:
            file.write(data)
        self.answer(201, {"path": path, "size_bytes": len(data)})

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/health":
            return self.answer(200, {"status": "ok"})
        session = sessions[url.path.split("/")[2]]
        path = session.path(parse_qs(url.query).get("path", ["."])[0])
        if url.path.endswith("/list"):
            entries = [entry for entry in os.scandir(path) if entry.is_file()]
            return self.answer(200, {"files": [{"path": e.name, "size_bytes": e.stat().st_size} for e in entries]})
        with open(path, "rb") as file:
            self.send_response(200)
            self.send_header("content-type", "application/octet-stream")
            self.send_header("content-length", str(os.fstat(file.fileno()).st_size))
            self.end_headers()
            shutil.copyfileobj(file, self.wfile, 1 << 18)
            self.wfile.flush()

    def do_DELETE(self):
        sessions.pop(self.path.split("/")[2]).end()
        self.send_response(204)
        self.end_headers()
        self.wfile.flush()

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        for each in sessions.values():
            each.end()
