/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a hook, which cannot mount: the name server and the CA are written into the container's root
 * directory. No process of the container runs yet. Every path is resolved inside that directory
 * (trust.c); what the container's mounts cover is left alone, except the resolv.conf that the
 * engine has made for this container.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/base/buf.h"
#include "vethguard/base/fd.h"
#include "vethguard/tls/bundle.h"
#include "runtime/edit.h"
#include "runtime/trust.h"

#define ENGINE_ID_DIGITS 64

static int open_inside(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
	        .mode = flags & O_CREAT ? 0644 : 0,
	        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* A new file, or the regular file that is there. */
static int put(int root, const char *path, struct slice bytes)
{
	struct stat at = {0};
	int found = trust_find(root, path, &at), fd, rc;

	if (found < 0 && found != -ENOENT)
		return found;
	if (found >= 0)
		close(found);
	fd = open_inside(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	rc = fd_write_all(fd, bytes);
	close(fd);
	return rc;
}

static void make_directories(int root)
{
	static const char *const parents[] = {"/", "/etc", "/etc/ssl"};
	static const char *const names[] = {"etc", "ssl", "certs"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int parent = open_inside(root, parents[i], O_PATH | O_DIRECTORY);

		if (parent < 0)
			return;
		(void)mkdirat(parent, names[i], 0755);
		close(parent);
	}
}

static int add_to_bundle(int root, const char *path, struct slice pem, bool make)
{
	struct stat at = {0};
	struct buf text;
	int fd = trust_find(root, path, &at), rc = 0;

	if (fd < 0 && (fd != -ENOENT || !make))
		return 0;
	buf_init(&text, TRUST_FILE_MAX + 131072);
	if (fd >= 0 && !trust_append(fd, &at, &text))
		rc = -EIO;
	if (fd >= 0)
		close(fd);
	if (!rc && !(text.len && memmem(buf_bytes(&text), text.len, pem.p, pem.n))) {
		rc = buf_append(&text, "\n", text.len > 0);
		if (!rc)
			rc = buf_append_slice(&text, pem);
		if (!rc)
			rc = put(root, path, buf_slice(&text));
	}
	buf_fini(&text);
	return rc;
}

/* Takes the last part of the path off. Returns it, with length 0 if there is none. */
static struct slice last_part(struct slice *path)
{
	size_t n = path->n;
	struct slice part;

	while (n > 0 && path->p[n - 1] != '/')
		n--;
	part = slice_of(path->p + n, path->n - n);
	path->n = n > 0 ? n - 1 : 0;
	return part;
}

/* True for what Podman and CRI-O make: DIRECTORY/DRIVER-containers/ID/userdata/resolv.conf. A user
 * can mount any other file of the host there, also one that the container may only read. */
static bool is_engines(const char *path)
{
	struct slice rest = slice_from_string(path), id;

	if (!slice_equals(last_part(&rest), SLICE("resolv.conf")) ||
	        !slice_equals(last_part(&rest), SLICE("userdata")))
		return false;
	id = last_part(&rest);
	for (size_t i = 0; i < id.n; i++)
		if (!isxdigit((unsigned char)id.p[i]))
			return false;
	return id.n == ENGINE_ID_DIGITS && slice_ends_with(last_part(&rest), SLICE("-containers"));
}

/* The file that the engine mounts over the container's resolv.conf, or NULL. */
static const char *mounted_resolver(const struct config *c)
{
	const json_t *mounts = json_object_get(c->root, "mounts");

	for (size_t i = 0; i < json_array_size(mounts); i++) {
		const json_t *mount = json_array_get(mounts, i);

		if (strcmp(control_text(mount, "destination"), TRUST_RESOLV) == 0)
			return control_text(mount, "source");
	}
	return NULL;
}

static int replace(const char *path, struct slice text)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		rc = -ELOOP;
	else
		rc = ftruncate(fd, 0) < 0 ? -errno : fd_write_all(fd, text);
	close(fd);
	return rc;
}

static int put_resolver(const struct config *c, int root, const json_t *answer, struct fault *fault)
{
	const json_t *servers = json_object_get(answer, "nameservers");
	const char *mounted = mounted_resolver(c);
	char text[512];
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(servers) && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "nameserver %s\n",
		        json_string_value(json_array_get(servers, i)));
	if (n >= sizeof(text))
		return -EMSGSIZE;
	if (!mounted)
		return put(root, TRUST_RESOLV, slice_of(text, n));
	if (is_engines(mounted))
		return replace(mounted, slice_of(text, n));
	fault_set(fault,
	        TRUST_RESOLV
	        " of the container is %s of the host, which the guard's name server is "
	        "not written to: start it without that mount",
	        mounted);
	return -EXDEV;
}

bool trust_write(const struct config *c, const json_t *answer, struct fault *fault)
{
	struct slice pem = slice_from_string(control_text(answer, "ca_pem"));
	int root = trust_open_root(c), rc;

	if (root < 0)
		return fault_set(fault, "the container's root directory: %s", strerror(-root));
	make_directories(root);
	rc = put_resolver(c, root, answer, fault);
	for (size_t i = 0; !rc && bundle_paths[i]; i++)
		if (!edit_is_covered(c->root, bundle_paths[i], false))
			rc = add_to_bundle(root, bundle_paths[i], pem,
			        strcmp(bundle_paths[i], TRUST_BUNDLE) == 0);
	if (!rc && !edit_is_covered(c->root, TRUST_CA, false))
		rc = put(root, TRUST_CA, pem);
	close(root);
	return rc == 0 ||
	       fault_set(fault, "name server and CA cannot be written into the container: %s",
	               strerror(-rc));
}
