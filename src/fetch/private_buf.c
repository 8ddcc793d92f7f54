/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers for secrets; see fetch/private_buf.h. */
#include "fetch/private_buf.h"
#include "vethguard/base/secret.h"

void private_buf_init(struct buf *b, size_t max)
{
	buf_init(b, max + 1); /* buf_printf() ends with a NUL */
	b->max = buf_reserve(b, max + 1) ? max : 0;
}

void private_buf_fini(struct buf *b)
{
	if (b->mem)
		secret_wipe(b->mem, b->cap);
	buf_fini(b);
}
