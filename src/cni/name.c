/* SPDX-License-Identifier: Apache-2.0 */
/* Which names the CNI specification allows, and which ones vethguard does. */
#include <string.h>

#include "cni/request.h"

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool cni_is_name(const char *text, size_t max)
{
	const size_t n = strlen(text);

	if (n == 0 || n > max || !is_alphanumeric(text[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!is_alphanumeric(text[i]) && !strchr("._-", text[i]))
			return false;
	return true;
}
