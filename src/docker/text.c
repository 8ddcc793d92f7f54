/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of dockerd's messages: strings, ids, addresses with their networks. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "docker/docker.h"

#define SHOWN_MAX 96

bool docker_wrong(char fault[DOCKER_FAULT_MAX], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault, DOCKER_FAULT_MAX, format, arguments);
	va_end(arguments);
	return false;
}

const char *docker_text(const json_t *object, const char *key, bool required, char *fault)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_string(value))
		return json_string_value(value);
	if (!required && (!value || json_is_null(value)))
		return "";
	docker_wrong(fault, "%s: has to be a string", key);
	return NULL;
}

static bool is_id(const char *text)
{
	size_t n = strlen(text);

	return n >= DOCKER_ID_MIN && n <= DOCKER_ID_MAX && strspn(text, "0123456789abcdef") == n;
}

bool docker_id(const json_t *body, const char *key, char out[DOCKER_ID_MAX + 1], char *fault)
{
	const char *text = docker_text(body, key, true, fault);
	char shown[SHOWN_MAX];

	out[0] = 0;
	if (!text)
		return false;
	if (!is_id(text))
		return docker_wrong(fault, "%s: \"%s\" is not an id of %d to %d hexadecimal digits",
		        key, slice_escape(slice_from_string(text), shown, sizeof(shown)),
		        DOCKER_ID_MIN, DOCKER_ID_MAX);
	snprintf(out, DOCKER_ID_MAX + 1, "%s", text);
	return true;
}

bool docker_cidr_parse(const char *text, struct docker_cidr *out)
{
	const char *slash = strchr(text, '/');
	char plain[IP_TEXT_MAX];
	uint64_t bits;

	*out = (struct docker_cidr){.bits = 0};
	if (!slash || !ip_parse(slice_of(text, (size_t)(slash - text)), &out->ip) ||
	        !slice_to_u64(slice_from_string(slash + 1), out->ip.family == 4 ? 32 : 128, &bits))
		return false;
	out->bits = (uint8_t)bits;
	snprintf(out->text, sizeof(out->text), "%s/%u", ip_format(&out->ip, plain), out->bits);
	return true;
}

bool docker_cidr_match(const struct docker_cidr *a, const struct docker_cidr *b)
{
	if (a->ip.family != b->ip.family || a->bits != b->bits)
		return false;
	for (unsigned i = 0; i < a->bits; i++)
		if ((a->ip.bytes[i / 8] ^ b->ip.bytes[i / 8]) & (0x80 >> i % 8))
			return false;
	return true;
}

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool docker_name_is_plain(const char *name, size_t max)
{
	size_t n = strlen(name);

	if (n == 0 || n > max || !is_alphanumeric(name[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!is_alphanumeric(name[i]) && !strchr("._-", name[i]))
			return false;
	return true;
}
