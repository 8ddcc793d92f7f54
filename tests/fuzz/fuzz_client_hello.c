/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the start of a connection. Beyond memory safety: the answer for a prefix never
 * contradicts the answer for more of the same bytes, and a name that is handed out is one that may
 * stand in a log.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/client_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct client_hello *hello)
{
	if (hello->sni_n > 253 || hello->sni[hello->sni_n] != '\0')
		abort();
	for (size_t i = 0; i < hello->sni_n; i++)
		if (hello->sni[i] <= ' ' || hello->sni[i] >= 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client_hello hello, shorter;
	enum client_hello_status status = client_hello_parse(data, size, &hello);
	enum client_hello_status before = client_hello_parse(data, size / 2, &shorter);

	check(&hello);
	if (status == CLIENT_HELLO_MORE &&
	        (size >= CLIENT_HELLO_MAX || before != CLIENT_HELLO_MORE))
		abort();
	if (before != CLIENT_HELLO_MORE && before != status)
		abort();
	return 0;
}
