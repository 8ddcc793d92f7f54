/* SPDX-License-Identifier: Apache-2.0 */
/* Some servers read only the first gzip member of a body, and others all of them. So a body with
 * more than one is refused. */
#include "git/gunzip.h"

#include <errno.h>
#include <zlib.h>

#define PIECE_BYTES 16384u
#define GZIP_ONLY (15 + 16) /* window bits: the largest window, and gzip's head and end */

static int run(z_stream *z, struct buf *out)
{
	uint8_t piece[PIECE_BYTES];
	int state = Z_OK, rc = 0;

	while (state == Z_OK && rc == 0) {
		z->next_out = piece;
		z->avail_out = sizeof(piece);
		state = inflate(z, Z_NO_FLUSH);
		rc = buf_append(out, piece, sizeof(piece) - z->avail_out);
	}
	if (rc < 0)
		return rc;
	if (state == Z_MEM_ERROR)
		return -ENOMEM;
	return state == Z_STREAM_END && z->avail_in == 0 ? 0 : -EBADMSG;
}

int gunzip(struct slice text, struct buf *out)
{
	z_stream z = {.next_in = (Bytef *)text.p, .avail_in = (uInt)text.n};
	int rc;

	if (text.n > UINT32_MAX)
		return -ENOBUFS;
	if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
		return -ENOMEM;
	rc = run(&z, out);
	inflateEnd(&z);
	return rc;
}
