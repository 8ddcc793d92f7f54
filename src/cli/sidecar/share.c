/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared directory: ca.pem (the guard's root), bundle.pem (the system's CAs and the root), env
 * (NAME=VALUE lines), env.sh (the same for a shell), and last of all ready. No credential is in any
 * of them, only placeholders.
 *
 * The sandbox may be able to write there. So each file is made under a new name and renamed over
 * the old one, which follows no link, and none of them is ever read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "cli/sidecar/sidecar.h"
#include "vethguard/adapter/trust_env.h"
#include "vethguard/base/fd.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/tls/bundle.h"

#define READY "ready"
#define SHARE_TEXT_MAX (1u << 20)

static int put_file(int directory, const char *name, struct slice bytes)
{
	char scratch[64];
	uint32_t number;
	int fd, rc;

	random_bytes(&number, sizeof(number));
	snprintf(scratch, sizeof(scratch), ".%s-%08x", name, (unsigned)number);
	fd = openat(directory, scratch, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, bytes);
	if (rc == 0 &&
	        (fchmod(fd, 0644) != 0 || renameat(directory, scratch, directory, name) != 0))
		rc = -errno;
	close(fd);
	if (rc)
		unlinkat(directory, scratch, 0);
	return rc;
}

static int open_directory(const struct sidecar_options *o, struct failure *failure)
{
	int fd = open(o->share, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? failure_set(failure, -errno, "--share %.256s", o->share) : fd;
}

int sidecar_share_begin(const struct sidecar_options *o, struct failure *failure)
{
	int fd = o->share ? open_directory(o, failure) : -1, rc = 0;

	if (!o->share || fd < 0)
		return o->share ? fd : 0;
	if (unlinkat(fd, READY, 0) != 0 && errno != ENOENT)
		rc = failure_set(failure, -errno, "--share %.256s: the old file " READY, o->share);
	else if (faccessat(fd, ".", W_OK, AT_EACCESS) != 0)
		rc = failure_set(failure, -errno,
		        "--share %.256s: user %u has to be able to write there", o->share,
		        (unsigned)geteuid());
	close(fd);
	return rc;
}

void sidecar_share_end(const struct sidecar_options *o)
{
	int fd = o->share ? open(o->share, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	unlinkat(fd, READY, 0);
	close(fd);
}

static int put_bundle(int directory, struct slice root)
{
	const char *system = bundle_system_path();
	struct buf text;
	int rc = 0;

	buf_init(&text, MOUNTS_FILE_MAX);
	if (system)
		rc = mounts_read(system, &text);
	else
		log_warn("there is no bundle of CAs in the guard's image: bundle.pem has the "
		         "guard's own alone");
	if (rc == 0 && text.len)
		rc = buf_append(&text, "\n", 1);
	if (rc == 0)
		rc = buf_append_slice(&text, root);
	if (rc == 0)
		rc = put_file(directory, "bundle.pem", buf_slice(&text));
	buf_fini(&text);
	return rc;
}

/* As containers see them. Returns false if a path is too long. */
static bool fill_env(struct environment *env, const struct sidecar_options *o,
        const struct message_run_ready *ready)
{
	const char *at = o->share_as ? o->share_as : o->share;
	char ca[PATH_MAX], bundle[PATH_MAX], url[64], address[IP_TEXT_MAX];
	struct trust_places places = {.bundle = bundle, .ca = ca};

	if (snprintf(ca, sizeof(ca), "%s/ca.pem", at) >= (int)sizeof(ca) ||
	        snprintf(bundle, sizeof(bundle), "%s/bundle.pem", at) >= (int)sizeof(bundle))
		return false;
	trust_env_set(env, &places);
	snprintf(url, sizeof(url), "http://%s:%u", ip_format(&ready->gate4, address),
	        (unsigned)ready->proxy_port);
	if (o->run.proxy_env)
		trust_env_set_proxy(env, url);
	for (size_t i = 0; i < ready->env_count; i++)
		environment_set(env, ready->env[i].name, ready->env[i].value);
	return !env->failed;
}

/* 'VALUE', with each ' written as '\''. */
static int append_quoted(struct buf *out, const char *text)
{
	int rc = buf_append(out, "'", 1);

	for (; rc == 0 && *text; text++)
		rc = *text == '\'' ? buf_append(out, "'\\''", 4) : buf_append(out, text, 1);
	return rc == 0 ? buf_append(out, "'\n", 2) : rc;
}

static int append_variable(struct buf *out, const char *variable, bool shell)
{
	size_t n = strcspn(variable, "=") + 1;
	int rc = shell ? buf_append(out, "export ", 7) : 0;

	if (strchr(variable, '\n'))
		return -EINVAL; /* the plain form cannot express it */
	if (rc == 0)
		rc = buf_append(out, variable, n);
	if (rc == 0 && shell)
		return append_quoted(out, variable + n);
	if (rc == 0)
		rc = buf_append_slice(out, slice_from_string(variable + n));
	return rc == 0 ? buf_append(out, "\n", 1) : rc;
}

static int put_env(int directory, const struct environment *env, bool shell)
{
	struct buf text;
	int rc = 0;

	buf_init(&text, SHARE_TEXT_MAX);
	for (size_t i = 0; rc == 0 && i < env->count; i++)
		rc = append_variable(&text, env->vars[i], shell);
	if (rc == 0)
		rc = put_file(directory, shell ? "env.sh" : "env", buf_slice(&text));
	buf_fini(&text);
	return rc;
}

static int put_all(
        int directory, const struct sidecar_options *o, const struct message_run_ready *ready)
{
	struct environment env;
	int rc;

	environment_init(&env);
	rc = fill_env(&env, o, ready) ? 0 : -ENAMETOOLONG;
	if (rc == 0)
		rc = put_file(directory, "ca.pem", ready->root_pem);
	if (rc == 0)
		rc = put_bundle(directory, ready->root_pem);
	if (rc == 0)
		rc = put_env(directory, &env, false);
	if (rc == 0)
		rc = put_env(directory, &env, true);
	if (rc == 0)
		rc = put_file(directory, READY, ready->sandbox);
	environment_fini(&env);
	return rc;
}

int sidecar_share(const struct sidecar_options *o, const struct message_run_ready *ready,
        struct failure *failure)
{
	int fd = o->share ? open_directory(o, failure) : -1, rc;

	if (!o->share || fd < 0)
		return o->share ? fd : 0;
	rc = put_all(fd, o, ready);
	close(fd);
	return rc ? failure_set(failure, rc, "--share %.256s", o->share) : 0;
}
