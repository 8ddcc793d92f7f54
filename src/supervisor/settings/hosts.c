/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /etc/resolv.conf and /etc/hosts, read line by line. Both are the host's own files, written by
 * many tools: what is not understood is passed over, as the C library does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vethguard/base/log.h"
#include "vethguard/policy/url.h"
#include "supervisor/settings/private.h"

#define DNS_PORT 53
#define HOST_FILE_MAX (1u << 20) /* bytes of either that are looked at */

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

size_t settings_parse_resolv(struct slice text, struct config_server *out, size_t max)
{
	size_t count = 0;

	while (text.n && count < max) {
		struct slice line = without_comment(next_line(&text), "#;");
		if (!slice_equals(next_word(&line), SLICE("nameserver")))
			continue;
		if (ip_parse(next_word(&line), &out[count].address))
			out[count++].port = DNS_PORT;
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

/* One line's names. False: no more room. */
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

bool settings_parse_hosts(
        struct slice text, struct config_host *hosts, size_t own, size_t *count, size_t max)
{
	while (text.n)
		if (!parse_hosts_line(
		            without_comment(next_line(&text), "#"), hosts, own, count, max))
			return false;
	return true;
}

/* A file of the host's, as much as HOST_FILE_MAX. Missing or unreadable: empty, as the C library
 * takes it. */
struct slice settings_host_file(const char *path, char **memory, struct stamp *stamp)
{
	FILE *in = fopen(path, "re");
	size_t room = HOST_FILE_MAX, n = 0;
	struct stat st;

	*stamp = (struct stamp){0};
	if (in && fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode)) {
		*stamp = stamp_of(&st, time(NULL));
		if (st.st_size > 0 && st.st_size < HOST_FILE_MAX)
			room = (size_t)st.st_size + 1;
	}
	*memory = in ? malloc(room) : NULL;
	if (*memory)
		n = fread(*memory, 1, room, in);
	if (in)
		fclose(in);
	return slice_of(*memory ? *memory : "", n);
}

static struct slice read_host_file(struct settings *s, const char *path, char **memory)
{
	struct stamp stamp;
	struct slice text = settings_host_file(path, memory, &stamp);

	settings_remember(s, SETTINGS_HOSTS, path, text, &(struct policy_file_facts){0}, &stamp);
	return text;
}

void settings_find_servers(struct settings *s)
{
	char *memory;

	s->server_count = s->config.server_count;
	memcpy(s->servers, s->config.servers, sizeof s->servers);
	if (s->server_count)
		return;
	struct slice text = read_host_file(s, "/etc/resolv.conf", &memory);
	s->server_count = settings_parse_resolv(text, s->servers, CONFIG_SERVERS_MAX);
	free(memory);
	if (s->server_count == 0) { /* resolv.conf(5): the name server on the local machine */
		s->servers[0] = (struct config_server){{4, {127, 0, 0, 1}}, DNS_PORT};
		s->server_count = 1;
	}
}

bool settings_host_asks_itself(void)
{
	struct config_server servers[CONFIG_SERVERS_MAX];
	bool own = false;
	struct stamp stamp;
	char *memory;
	struct slice text = settings_host_file("/etc/resolv.conf", &memory, &stamp);
	size_t count = settings_parse_resolv(text, servers, CONFIG_SERVERS_MAX);

	free(memory);
	for (size_t i = 0; i < count; i++)
		own = own || ip_classify(&servers[i].address) == IP_LOOPBACK;
	return own;
}

int settings_find_hosts(struct settings *s)
{
	char *memory;
	size_t own = s->config.host_count;

	struct config_host *shrunk, *hosts = calloc(CONFIG_HOSTS_MAX, sizeof *hosts);
	if (!hosts)
		return -ENOMEM;
	s->hosts = hosts;
	if (own)
		memcpy(s->hosts, s->config.hosts, own * sizeof *s->hosts);
	s->host_count = own;
	struct slice text = read_host_file(s, "/etc/hosts", &memory);
	if (!settings_parse_hosts(text, s->hosts, own, &s->host_count, CONFIG_HOSTS_MAX))
		log_warn("/etc/hosts has more than %d names: the rest is not used",
		        CONFIG_HOSTS_MAX);
	free(memory);
	shrunk = realloc(hosts, (s->host_count + 1) * sizeof *hosts);
	if (shrunk)
		s->hosts = shrunk;
	return 0;
}
