/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is the form that OpenSSL's configuration has for the extension: "permitted;DNS:a.test,
 * excluded;IP:...", with commas between and no blanks. A kind of name without any constraint would
 * be free, so kinds without a permitted name are excluded as a whole.
 */
#include "vethguard/tls/ca_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NO_HOST "permitted;DNS:invalid" /* RFC 6761: nobody has that name */
#define NO_NETWORK4 "excluded;IP:0.0.0.0/0.0.0.0"
#define NO_NETWORK6 "excluded;IP:::/::"

void ca_names_init(struct ca_names *names)
{
	memset(names, 0, sizeof(*names));
	buf_init(&names->text, CA_NAMES_MAX);
}

void ca_names_fini(struct ca_names *names)
{
	buf_fini(&names->text);
}

static int add(struct ca_names *names, const char *text)
{
	int rc = names->text.len ? buf_append(&names->text, ",", 1) : 0;

	if (rc == 0)
		rc = buf_append(&names->text, text, strlen(text));
	return rc == 0 ? 0 : -ENOBUFS;
}

static bool is_of_host(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

int ca_names_add_host(struct ca_names *names, struct slice host)
{
	char text[300];

	if (host.n == 0 || host.n > 253)
		return -EINVAL;
	for (size_t i = 0; i < host.n; i++)
		if (!is_of_host(host.p[i]))
			return -EINVAL;
	names->host = true;
	snprintf(text, sizeof(text), "permitted;DNS:%.*s", SLICE_ARG(host));
	return add(names, text);
}

int ca_names_add_network(struct ca_names *names, const struct ip_prefix *network)
{
	char base[IP_TEXT_MAX], mask_text[IP_TEXT_MAX], text[2 * IP_TEXT_MAX + 32];
	struct ip mask = {.family = network->base.family};

	if ((mask.family != 4 && mask.family != 6) || network->bits > (mask.family == 4 ? 32 : 128))
		return -EINVAL;
	for (unsigned i = 0; i < network->bits; i++)
		mask.bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
	names->network4 |= mask.family == 4;
	names->network6 |= mask.family == 6;
	snprintf(text, sizeof(text), "permitted;IP:%s/%s", ip_format(&network->base, base),
	        ip_format(&mask, mask_text));
	return add(names, text);
}

int ca_names_end(struct ca_names *names)
{
	int rc = names->host ? 0 : add(names, NO_HOST);

	if (rc == 0 && !names->network4)
		rc = add(names, NO_NETWORK4);
	if (rc == 0 && !names->network6)
		rc = add(names, NO_NETWORK6);
	return rc;
}

bool ca_names_are_plain(struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (!c || (!is_of_host(c) && !strchr(";:/,DNSIP", c)))
			return false;
	}
	return text.n > 0 && text.n <= CA_NAMES_MAX;
}
