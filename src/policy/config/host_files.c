/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /etc/resolv.conf and /etc/hosts line by line. Both are the host's own files, written by
 * many tools, so what is not understood is skipped, as the C library does.
 */
#include "vethguard/policy/host_files.h"
#include "vethguard/policy/url.h"

static struct slice next_line(struct slice *text)
{
	ptrdiff_t end = slice_find_byte(*text, '\n');
	size_t n = end < 0 ? text->n : (size_t)end;
	struct slice line = slice_of(text->p, n);

	n += end >= 0;
	*text = slice_of(text->p + n, text->n - n);
	return line;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct slice next_word(struct slice *line)
{
	size_t start = 0;

	while (start < line->n && is_space(line->p[start]))
		start++;
	size_t end = start;
	while (end < line->n && !is_space(line->p[end]))
		end++;
	struct slice word = slice_of(line->p + start, end - start);
	*line = slice_of(line->p + end, line->n - end);
	return word;
}

static struct slice without_comment(struct slice line, const char *marks)
{
	for (; *marks; marks++) {
		ptrdiff_t at = slice_find_byte(line, *marks);
		if (at >= 0)
			line.n = (size_t)at;
	}
	return line;
}

size_t host_files_parse_resolv(struct slice text, struct config_server *out, size_t max)
{
	size_t count = 0;

	while (text.n && count < max) {
		struct slice line = without_comment(next_line(&text), "#;");
		if (!slice_equals(next_word(&line), SLICE("nameserver")))
			continue;
		if (ip_parse(next_word(&line), &out[count].address))
			out[count++].port = CONFIG_SERVER_PORT;
	}
	return count;
}

static bool is_configured(const struct config_host *hosts, size_t own, const char *name)
{
	for (size_t i = 0; i < own; i++)
		if (strcmp(hosts[i].name, name) == 0)
			return true;
	return false;
}

/* Adds one line's names. False: no more room. */
static bool parse_hosts_line(
        struct slice line, struct config_host *hosts, size_t own, size_t *count, size_t max)
{
	struct ip address;
	struct slice name;

	if (!ip_parse(next_word(&line), &address))
		return true;
	while ((name = next_word(&line)).n) {
		char canonical[POLICY_HOST_MAX + 1];
		size_t n;

		if (!url_canonical_host(name, canonical, &n) ||
		        is_configured(hosts, own, canonical))
			continue;
		if (*count >= max)
			return false;
		memcpy(hosts[*count].name, canonical, n + 1);
		hosts[(*count)++].address = address;
	}
	return true;
}

bool host_files_parse_hosts(
        struct slice text, struct config_host *hosts, size_t own, size_t *count, size_t max)
{
	while (text.n)
		if (!parse_hosts_line(
		            without_comment(next_line(&text), "#"), hosts, own, count, max))
			return false;
	return true;
}
