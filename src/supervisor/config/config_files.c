/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration refers to: CA files, the proxy's password, the egress interface, the
 * directory of the audit log. A sandbox that starts notices by itself what is missing. The checks
 * here tell it in advance, to `--check-config`, and also note settings that are accepted but have
 * no effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"
#include "supervisor/os/memfd.h"
#include "supervisor/config/private.h"
#include "supervisor/config/sources.h"

#define ALL_ADDRESSES_BITS 7 /* a network with a prefix this short is nobody's own */

static int open_file(const char *path, bool local)
{
	int fd = local ? local_file_open(path)
	               : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 && !local ? -errno : fd;
}

/* RFC 7468; OpenSSL also reads TRUSTED CERTIFICATE and X509 CERTIFICATE. True as well for a file
 * that cannot be read: that is another fault. */
static bool holds_certificate(const char *path, bool local)
{
	int fd = open_file(path, local);
	struct policy_file_facts facts;
	char *text = NULL;
	size_t n = 0;
	bool holds = true;

	if (fd < 0)
		return true;
	if (policy_read_open_file(fd, &text, &n, &facts) == 0)
		holds = memmem(text, n, "-----BEGIN ", 11) &&
		        memmem(text, n, "CERTIFICATE-----", 16);
	free(text);
	close(fd);
	return holds;
}

void settings_note_config(
        const struct config *c, const char *path, bool local, struct diag_list *notes)
{
	char text[IP_TEXT_MAX];

	for (size_t i = 0; i < c->ca_file_count; i++)
		if (!holds_certificate(c->ca_files[i], local))
			diag_add(notes, path, 0, 0,
			        "CA file %s holds no certificate in PEM (-----BEGIN "
			        "CERTIFICATE-----)",
			        c->ca_files[i]);
	for (size_t i = 0; i < c->permit_count; i++)
		if (c->permit[i].bits <= ALL_ADDRESSES_BITS)
			diag_add(notes, path, 0, 0,
			        "permit %s/%u is wider than a private range and permits none of "
			        "its private and special addresses; list the networks that are "
			        "meant",
			        ip_format(&c->permit[i].base, text), c->permit[i].bits);
	if (c->egress.interface[0] && if_nametoindex(c->egress.interface) == 0)
		diag_add(notes, path, 0, 0,
		        "egress.interface %s is not there now ('ip -br link' lists those that "
		        "are); requests fail until it is",
		        c->egress.interface);
}

static void check_cas(const struct config *c, const char *path, struct diag_list *diags)
{
	const char *culprit = NULL;
	int fd = memfd_trusted_cas(c, true, &culprit);

	if (fd >= 0)
		close(fd);
	else if (fd == LOCAL_FILE_UNKNOWN && culprit)
		diag_add(diags, path, 0, 0, "CA file %s " SETTINGS_NOT_LOCAL, culprit);
	else if (culprit)
		diag_add(diags, path, 0, 0, "CA file %s: %s", culprit, strerror(-fd));
}

static void check_password(const struct config *c, const char *path, struct diag_list *diags)
{
	const struct identity own = {.uid = geteuid(), .gid = getegid()};
	char error[SOURCE_ERROR_MAX];
	int fd;

	if (!c->egress_password_file[0])
		return;
	fd = source_file_open(&own, c->egress_password_file, false, error);
	if (fd < 0)
		diag_add(diags, path, 0, 0, "egress.password_file: %s", error);
	else
		close(fd);
}

static void check_audit(const struct config *c, const char *path, struct diag_list *diags)
{
	char directory[PATH_MAX];
	char *slash;
	struct stat st;

	snprintf(directory, sizeof(directory), "%s", c->audit_file);
	slash = strrchr(directory, '/');
	if (!slash)
		return;
	slash[slash == directory] = 0;
	if (local_file_look(directory, &st) == -ENOENT)
		diag_add(diags, path, 0, 0, "audit_file %s: the directory %s has to exist first",
		        c->audit_file, directory);
}

void settings_check_config_files(const struct config *c, const char *path, struct diag_list *diags)
{
	check_cas(c, path, diags);
	check_password(c, path, diags);
	check_audit(c, path, diags);
	settings_check_floor(c, path, diags);
}

struct settings *settings_of_services(const char *config_path)
{
	struct settings *s = calloc(1, sizeof(*s));
	struct diag_list *diags = calloc(1, sizeof(*diags));
	int rc = s && diags ? 0 : -ENOMEM;

	if (s) {
		s->refs = 1;
		s->image_file = -1;
		config_init(&s->config);
	}
	if (!rc && config_path && *config_path)
		rc = settings_load_config(config_path, &s->config, diags);
	if (!rc) {
		settings_find_servers(s);
		rc = settings_find_hosts(s);
	}
	free(diags);
	if (!rc)
		return s;
	settings_put(s);
	return NULL;
}
