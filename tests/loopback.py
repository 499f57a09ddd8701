"""A server on this machine that stands for the sources' servers: raw files, the Hub's layout, faults on order."""

import hashlib
import json
import threading
from collections import defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Loopback(ThreadingHTTPServer):
    """Serves what its attributes hold.

    files, repositories : path to content, and name to {path: content}, None for a file that is listed but not there.
    faults : path to what its next GETs meet: a status, or "cut" for a line that breaks.
    gated : repositories that refuse their files.
    hashes : sha256 that are named instead of the right ones.
    log : method, path and Range of all requests.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.repositories = {}, {}
        self.faults, self.headers = defaultdict(list), {"Retry-After": "1"}
        self.gated, self.hashes, self.log = set(), {}, []
        self.resumes = True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def seen(self, end, method="GET"):
        """The Range headers of the requests for paths that end so."""
        return [r for m, path, r in self.log if m == method and path.endswith(end)]


@contextmanager
def loopback():
    with Loopback() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(timeout=5)


class _Handler(BaseHTTPRequestHandler):
    timeout = 10

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        path = unquote(urlsplit(self.path).path).lstrip("/")
        self.server.log.append((self.command, path, self.headers.get("Range")))
        faults = self.server.faults[path]
        fault = faults.pop(0) if faults and body else None
        if isinstance(fault, int):
            self._send(fault, b"busy", self.server.headers, body)
        elif path.startswith("api/datasets/"):
            self._api(path.removeprefix("api/datasets/"), body)
        elif path.startswith("datasets/"):
            self._resolve(path.removeprefix("datasets/"), body, fault)
        elif path in self.server.files:
            self._file(self.server.files[path], {}, body, fault)
        else:
            self._send(404, b"none", {}, body)

    def _api(self, rest, body):
        repository = "/".join(rest.split("/")[:2])
        if repository not in self.server.repositories:
            return self._send(401, b"{}", {"X-Error-Code": "RepoNotFound"}, body)
        files = self.server.repositories[repository]
        if "/tree/" in rest:
            answer = [{"type": "directory", "path": "org__m", "oid": "0" * 40}]
            answer += [self._entry(path, content or b"") for path, content in files.items()]
        else:
            answer = {"id": repository, "sha": COMMIT}
        return self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"}, body)

    def _entry(self, path, content):
        sha256 = self.server.hashes.get(path, hashlib.sha256(content).hexdigest())
        large = {"lfs": {"oid": sha256, "size": len(content), "pointerSize": 134}} if path.endswith(".parquet") else {}
        return {"type": "file", "path": path, "size": len(content), "oid": "0" * 40, **large}

    def _resolve(self, rest, body, fault):
        repository, path = rest.split(f"/resolve/{COMMIT}/")
        common = {"X-Repo-Commit": COMMIT}
        if repository in self.server.gated:
            return self._send(403, b"", {**common, "X-Error-Code": "GatedRepo"}, body)
        if path not in self.server.repositories[repository]:
            return self._send(404, b"", {**common, "X-Error-Code": "EntryNotFound"}, body)
        content = self.server.repositories[repository][path]
        if content is None:
            return self._send(404, b"", {**common, "X-Error-Code": "EntryNotFound"}, body)
        return self._file(content, {**common, "ETag": f'"{len(content):040x}"'}, body, fault)

    def _file(self, content, headers, body, fault):
        wanted = self.headers.get("Range")
        status = 200
        if wanted and self.server.resumes:
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            headers = {**headers, "Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            content, status = content[start:], 206
        if fault == "cut":
            self._head(status, len(content), headers)
            self.wfile.write(content[: 2 * len(content) // 3])
            return
        self._send(status, content, {**headers, "Accept-Ranges": "bytes"}, body)

    def _head(self, status, length, headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, status, content, headers, body):
        self._head(status, len(content), headers)
        if body:
            self.wfile.write(content)
