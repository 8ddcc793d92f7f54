/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the host's /etc/resolv.conf and /etc/hosts and adds them to the configuration. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vethguard/base/log.h"
#include "vethguard/policy/host_files.h"
#include "supervisor/config/private.h"

#define HOST_FILE_MAX (1u << 20) /* bytes read of either */

/* Reads at most HOST_FILE_MAX bytes. A missing or unreadable file counts as empty, as in the C
 * library. */
struct slice settings_host_file(const char *path, char **memory, struct fingerprint *fingerprint)
{
	FILE *in = fopen(path, "re");
	size_t room = HOST_FILE_MAX, n = 0;
	struct stat st;

	*fingerprint = (struct fingerprint){0};
	if (in && fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode)) {
		*fingerprint = fingerprint_of(&st, time(NULL));
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
	struct fingerprint fingerprint;
	struct slice text = settings_host_file(path, memory, &fingerprint);

	settings_cache_remember(
	        s, SETTINGS_HOSTS, path, text, &(struct policy_file_facts){0}, &fingerprint);
	return text;
}

void settings_find_servers(struct settings *s)
{
	char *memory;

	s->server_count = s->config.server_count;
	memcpy(s->servers, s->config.servers, sizeof(s->servers));
	if (s->server_count)
		return;
	struct slice text = read_host_file(s, "/etc/resolv.conf", &memory);
	s->server_count = host_files_parse_resolv(text, s->servers, CONFIG_SERVERS_MAX);
	free(memory);
	if (s->server_count == 0) { /* resolv.conf(5): the name server on the local machine */
		s->servers[0] = (struct config_server){{4, {127, 0, 0, 1}}, CONFIG_SERVER_PORT};
		s->server_count = 1;
	}
}

int settings_find_hosts(struct settings *s)
{
	char *memory;
	size_t own = s->config.host_count;

	struct config_host *shrunk, *hosts = calloc(CONFIG_HOSTS_MAX, sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	s->hosts = hosts;
	if (own)
		memcpy(s->hosts, s->config.hosts, own * sizeof(*s->hosts));
	s->host_count = own;
	struct slice text = read_host_file(s, "/etc/hosts", &memory);
	if (!host_files_parse_hosts(text, s->hosts, own, &s->host_count, CONFIG_HOSTS_MAX))
		log_warn("/etc/hosts has more than %d names: the rest is not used",
		        CONFIG_HOSTS_MAX);
	free(memory);
	shrunk = realloc(hosts, (s->host_count + 1) * sizeof(*hosts));
	if (shrunk)
		s->hosts = shrunk;
	return 0;
}
