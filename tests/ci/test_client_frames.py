"""The frames of clients/pubmark_client.py against the vectors that pubmark's own codec is tested with."""

import json
import sys
import unittest
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[2] / "clients"
sys.path.insert(0, str(CLIENTS))

import pubmark_client  # noqa: E402


class Frames(unittest.TestCase):
    def setUp(self):
        self.vectors = json.loads((CLIENTS / "test-vectors.json").read_text())

    def test_frames_to_the_program_are_read_as_their_fields_say(self):
        buffer, expected = bytearray(), []
        for vector in self.vectors:
            if vector["to"] == "program":
                fields = dict(vector["fields"])
                if "payload_hex" in fields:
                    fields["payload"] = bytes.fromhex(fields.pop("payload_hex"))
                expected.append((vector["frame"], fields))
                buffer += bytes.fromhex(vector["hex"])
        found = []
        whole = bytes(buffer)
        buffer.clear()
        for byte in whole:  # However they come in pieces.
            buffer.append(byte)
            found += pubmark_client.read_frames(buffer)
        self.assertEqual(found, expected)
        self.assertEqual(len(buffer), 0)

    def test_frames_to_pubmark_are_written_as_they_stand(self):
        count = 0
        for vector in self.vectors:
            if vector["to"] != "pubmark":
                continue
            fields = dict(vector["fields"])
            if "payload_hex" in fields:
                fields["payload"] = bytes.fromhex(fields.pop("payload_hex"))
            if "json" in fields:
                fields = {"fields": fields["json"].encode()}
            frame = getattr(pubmark_client, vector["frame"])(**fields)
            self.assertEqual(frame.hex(), vector["hex"], vector["frame"])
            count += 1
        self.assertGreater(count, 10)

    def test_a_long_reason_is_cut_between_letters(self):
        for frame in [
            pubmark_client.closed(1, 1, pubmark_client.SERVER, 0, "a" + "ü" * 200),
            pubmark_client.granted(1, 1, 0, 135, "a" + "ü" * 200),
            pubmark_client.revoked(1, 1, 0, 135, "a" + "ü" * 200),
        ]:
            self.assertTrue(frame.endswith(b"a" + "ü".encode() * 127))

    def test_the_page_shows_the_client_as_it_is(self):
        client = (CLIENTS / "sixty-lines/client.py").read_text()
        page = (CLIENTS.parent / "docs/how-to/write-a-client.md").read_text()
        self.assertIn(f"```python\n{client}```", page)
        self.assertLessEqual(sum(1 for line in client.splitlines() if line.strip()), 60)

    def test_a_text_beyond_its_frame_is_an_error(self):
        with self.assertRaises(ValueError):
            pubmark_client.read_frames(bytearray.fromhex("0d000000" + "04" + "00000000" + "0000" + "00" + "00" + "ff000000"))


if __name__ == "__main__":
    unittest.main()
