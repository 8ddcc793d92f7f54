# SPDX-License-Identifier: Apache-2.0
"""The content codings that vethguard reads, as servers make them and clients undo them."""
import gzip
import zlib

import brotli
import zstandard


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


# By name: the coding's name in Content-Encoding, and how it is made and undone. Undoing fails for truncated or other content.
CODINGS = {
    "gzip": ("gzip", gzip.compress, gzip.decompress),
    "deflate": ("deflate", zlib.compress, zlib.decompress),
    "raw deflate": ("deflate", raw_deflate, lambda data: zlib.decompress(data, wbits=-15)),
    "br": ("br", brotli.compress, brotli.decompress),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress, lambda data: zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 24)),
}
ERRORS = (OSError, EOFError, zlib.error, brotli.error, zstandard.ZstdError)


def views(data, name):
    """A list of the contents that a client may read from data with this Content-Encoding."""
    found = []
    for coding, _, undo in CODINGS.values():
        if coding == name:
            try:
                found.append(undo(data))
            except ERRORS:
                pass
    return found
