/* SPDX-License-Identifier: Apache-2.0 */
/*
 * br, by libbrotlidec. Its "large window" format, which RFC 7932 does not have, stays off. It gets
 * no dictionary besides that of RFC 7932.
 */
#include <brotli/decode.h>
#include <errno.h>

#include "credential/decompress_private.h"

static void *new_brotli(struct decompress_heap *heap)
{
	return BrotliDecoderCreateInstance(decompress_alloc, decompress_release, heap);
}

static void free_brotli(void *decoder)
{
	BrotliDecoderDestroyInstance(decoder);
}

static int step_brotli(void *decoder, struct decompress_io *io)
{
	switch (BrotliDecoderDecompressStream(
	        decoder, &io->in_n, &io->in, &io->out_n, &io->out, NULL)) {
	case BROTLI_DECODER_RESULT_SUCCESS:
		return 1;
	case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
	case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
		return 0;
	case BROTLI_DECODER_RESULT_ERROR:
	default:
		return -EBADMSG;
	}
}

const struct decompress_format decompress_brotli = {
        .new = new_brotli, .free = free_brotli, .step = step_brotli};
