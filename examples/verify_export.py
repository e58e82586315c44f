"""Verifies an export and its manifest by docs/signed-texts.md, without a service and without its code:
  python3 examples/verify_export.py log.jsonl sealing-key.public.pem
It needs Python 3.8 and OpenSSL 3. Exit code 0: as the holder of the key exported it; 3: it is not.
"""
import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ZEROS = "0" * 64


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def refuse(where: str, reason: str) -> None:
    print(f"BROKEN  {where}: {reason}")
    sys.exit(3)


def event_text(line: bytes, fields: dict) -> bytes:
    if "text" in fields:
        return fields["text"].encode()
    return line[line.index(b',"event":') + len(b',"event":') : line.rindex(b',"chain":')]


def is_signed(text: bytes, signature: str, key_file: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        signed, value = Path(folder, "text"), Path(folder, "signature")
        signed.write_bytes(text)
        value.write_bytes(base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4)))
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key_file, "-rawin"]
        done = subprocess.run(command + ["-in", signed, "-sigfile", value], capture_output=True)
        return done.returncode == 0


file_name, key_file = sys.argv[1:3]
manifest = json.loads(Path(file_name + ".manifest.json").read_bytes())
signature = manifest.pop("signature", {"value": ""})
canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
if not is_signed(f"payments export manifest 1\n{canonical}\n".encode(), signature["value"], key_file):
    refuse("manifest", "its signature is not the key's")

is_whole = manifest["completeness"] == "log"
whole, count, size = hashlib.sha256(), 0, 0
chain, log_hash, head, in_stream = ZEROS, ZEROS, None, {}
with open(file_name, "rb") as file:
    for line in file:
        count, size = count + 1, size + len(line)
        whole.update(line)
        try:
            fields = json.loads(line)
            linked = sha256(chain.encode() + line[: line.rindex(b',"chain":')])
        except ValueError:
            refuse(f"line {count}", "it is no line of an export")
        if linked != fields.get("chain"):
            refuse(f"line {count}", "it does not follow the line before it")
        if sha256(event_text(line, fields)) != fields["hash"]:
            refuse(f"line {count}", "its event does not have its hash")
        event = fields.get("event", fields)
        stream, previous = event["stream"], event.get("previousHash")
        if in_stream.get(stream, previous if event["revision"] > 0 else ZEROS) != previous:
            refuse(f"line {count}", "its event does not follow in its stream")
        if is_whole and sha256((log_hash + fields["hash"]).encode()) != fields["logHash"]:
            refuse(f"line {count}", "its event does not follow in the log")
        chain, log_hash, in_stream[stream] = fields["chain"], fields.get("logHash"), fields["hash"]
        head = {"position": fields["position"], "stream": stream, "revision": event["revision"]}

found = {"count": count, "bytes": size, "sha256": whole.hexdigest(), "chain": chain}
for name, value in found.items():
    if manifest[name] != value:
        refuse("the file", f"its {name} is {value}, and the manifest says {manifest[name]}")
if head is not None and not head.items() <= manifest["head"].items():
    refuse("the file", "its last event is not the head of the manifest")
print(f"intact  {count} events of log {manifest['log']}, signed by the key")
