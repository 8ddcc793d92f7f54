/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the start of a connection. Beyond memory safety: the answer for a prefix never
 * contradicts the answer for more of the same bytes, a name that is handed out is safe in a
 * log, and an input has an alert if and only if it is refused.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/client_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct client_hello *hello, enum client_hello_status status)
{
	if ((status == CLIENT_HELLO_BAD) != (hello->alert != 0) || (hello->alert && hello->sni_n))
		abort();
	if (hello->sni_n > 253 || hello->sni[hello->sni_n] != '\0')
		abort();
	for (size_t i = 0; i < hello->sni_n; i++)
		if (hello->sni[i] <= ' ' || hello->sni[i] >= 0x7f)
			abort();
}

/* A ClientHello is not a stray, and what was called one stays one. */
static void check_stray(const uint8_t *data, size_t size, enum client_hello_status status)
{
	bool more, before_more;
	uint8_t alert = client_hello_stray_alert(data, size, &more);
	uint8_t before = client_hello_stray_alert(data, size / 2, &before_more);

	if ((more && (alert || size >= 5)) || (before && before != alert))
		abort();
	if (size && !before && !before_more && size / 2 && (alert || more))
		abort();
	if (status == CLIENT_HELLO_NOT_TLS && size > 1 && data[0] == 22 && (alert || more))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client_hello hello, shorter;
	enum client_hello_status status = client_hello_parse(data, size, &hello);
	enum client_hello_status before = client_hello_parse(data, size / 2, &shorter);

	check(&hello, status);
	check(&shorter, before);
	check_stray(data, size, status);
	if (status == CLIENT_HELLO_MORE &&
	        (size >= CLIENT_HELLO_MAX || before != CLIENT_HELLO_MORE))
		abort();
	if (before != CLIENT_HELLO_MORE && before != status)
		abort();
	return 0;
}
