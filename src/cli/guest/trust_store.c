/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the sandbox's CA into the trust stores that programs read: the system's directory (a tmpfs
 * copy with the CA, its hashed link, and the bundle with the CA appended), other places where
 * distributions keep bundles, Java keystores, and the user's NSS database. Only existing stores are
 * replaced; nothing on the disk changes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/tls/bundle.h"

#define TRUST_DEPTH_MAX 3
#define TRUST_LINKS_MAX 64 /* certificates with one subject hash */

static const char *const keystores[] = {TRUST_DIRECTORY "/java/cacerts", "/etc/pki/java/cacerts",
        "/etc/pki/ca-trust/extracted/java/cacerts", "/var/lib/ca-certificates/java-cacerts",
        "/etc/ca-certificates/extracted/java-cacerts.jks", NULL};

/* Where p11-kit's trust module finds further anchors. GnuTLS and NSS of Fedora, openSUSE and Arch
 * ask that module instead of reading a bundle. */
static const char *const anchors[] = {"/etc/pki/ca-trust/source/anchors", "/etc/pki/trust/anchors",
        "/etc/ca-certificates/trust-source/anchors", NULL};

static int copy_directory(const char *from, const char *to, unsigned depth);

static int copy_entry(const char *from, const char *to, unsigned depth)
{
	char target[PATH_MAX];
	struct buf bytes;
	struct stat st;
	ssize_t n;
	int rc;

	if (lstat(from, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(from, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		return symlink(target, to) != 0 ? -errno : 0;
	}
	if (S_ISDIR(st.st_mode))
		return depth < TRUST_DEPTH_MAX ? copy_directory(from, to, depth + 1) : 0;
	if (!S_ISREG(st.st_mode))
		return 0;
	buf_init(&bytes, MOUNTS_FILE_MAX);
	rc = mounts_read(from, &bytes);
	if (rc == 0)
		rc = mounts_write(to, buf_slice(&bytes), st.st_mode & 0777);
	buf_fini(&bytes);
	return rc == -EACCES ? 0 : rc; /* a private key beside the certificates, not readable for
	                                  this user */
}

static int copy_directory(const char *from, const char *to, unsigned depth)
{
	char source[PATH_MAX], copy[PATH_MAX];
	DIR *dir = opendir(from);
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return errno == EACCES ? 0 : -errno;
	if (mkdir(to, 0755) != 0 && errno != EEXIST)
		rc = -errno;
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(source, sizeof(source), "%s/%s", from, entry->d_name) >=
		                (int)sizeof(source) ||
		        snprintf(copy, sizeof(copy), "%s/%s", to, entry->d_name) >=
		                (int)sizeof(copy))
			rc = -ENAMETOOLONG;
		else
			rc = copy_entry(source, copy, depth);
	}
	closedir(dir);
	return rc;
}

/* Makes HASH.0, or HASH with the next free number. */
static int link_by_hash(const char *directory, struct slice pem)
{
	char hash[BUNDLE_HASH_TEXT], path[PATH_MAX];
	int rc = bundle_subject_hash(pem, hash);

	for (unsigned i = 0; rc == 0 && i < TRUST_LINKS_MAX; i++) {
		snprintf(path, sizeof(path), "%s/%s.%u", directory, hash, i);
		if (symlink("vethguard.pem", path) == 0)
			return 0;
		if (errno != EEXIST)
			rc = -errno;
	}
	return rc != 0 ? rc : -EEXIST;
}

/* Reads a bundle and appends the CA. */
static int bundle_with_ca(const char *path, struct slice pem, struct buf *out)
{
	int rc = mounts_read(path, out);

	if (rc == 0)
		rc = buf_append(out, "\n", 1);
	return rc == 0 ? buf_append_slice(out, pem) : rc;
}

/* Fills the copy of a directory, still under its scratch name. */
static int fill_directory(const char *from, const char *copy, struct slice pem)
{
	char path[PATH_MAX];
	int rc = copy_directory(from, copy, 0);

	snprintf(path, sizeof(path), "%s/vethguard.pem", copy);
	return rc == 0 ? mounts_write(path, pem, 0644) : rc;
}

static int trust_anchors(struct mounts *m)
{
	char copy[64];
	int rc = 0;

	for (size_t i = 0; rc == 0 && anchors[i]; i++) {
		if (access(anchors[i], F_OK) != 0)
			continue;
		rc = mounts_scratch(m, true, 0755, copy, sizeof(copy));
		if (rc == 0)
			rc = fill_directory(anchors[i], copy, m->plan->root_pem);
		if (rc == 0)
			rc = mounts_attach(copy, anchors[i], true);
	}
	return rc;
}

/* Replaces one file: in the scratch copy (writable) if it lies there, else by a mount over it. */
static int trust_replace(struct mounts *m, const char *path, struct slice bytes)
{
	static const char inside[] = TRUST_DIRECTORY "/";

	if (strncmp(path, inside, sizeof(inside) - 1) == 0)
		return mounts_write(path, bytes, 0644);
	return mounts_replace(m, path, bytes);
}

/* True if an earlier name of the table leads to the same file. */
static bool done_before(const char *const *names, size_t count, const char *real)
{
	char other[PATH_MAX];

	for (size_t i = 0; i < count; i++)
		if (realpath(names[i], other) && strcmp(other, real) == 0)
			return true;
	return false;
}

static int trust_bundles(struct mounts *m)
{
	char real[PATH_MAX];
	struct buf text;
	int rc = 0;

	for (size_t i = 0; rc == 0 && bundle_paths[i]; i++) {
		if (!realpath(bundle_paths[i], real) || done_before(bundle_paths, i, real))
			continue;
		buf_init(&text, MOUNTS_FILE_MAX);
		rc = bundle_with_ca(real, m->plan->root_pem, &text);
		if (rc == 0)
			rc = trust_replace(m, real, buf_slice(&text));
		buf_fini(&text);
	}
	return rc;
}

static int trust_keystores(struct mounts *m)
{
	const char *system = bundle_system_path();
	char real[PATH_MAX];
	struct buf old, bundle, out;
	int rc = 0;

	buf_init(&bundle, MOUNTS_FILE_MAX);
	for (size_t i = 0; rc == 0 && keystores[i]; i++) {
		if (!realpath(keystores[i], real) || done_before(keystores, i, real))
			continue;
		buf_init(&old, MOUNTS_FILE_MAX);
		buf_init(&out, MOUNTS_FILE_MAX);
		rc = mounts_read(real, &old);
		if (rc == 0 && bundle.len == 0 && system)
			(void)mounts_read(system, &bundle);
		if (rc == 0)
			rc = java_store_add(
			        buf_slice(&old), buf_slice(&bundle), m->plan->root_pem, &out);
		if (rc == 0)
			rc = trust_replace(m, real, buf_slice(&out));
		buf_fini(&old);
		buf_fini(&out);
	}
	buf_fini(&bundle);
	return rc;
}

static int trust_directory(struct mounts *m, char *copy, size_t copy_size)
{
	int rc = mounts_scratch(m, true, 0755, copy, copy_size);

	if (rc == 0)
		rc = fill_directory(TRUST_DIRECTORY, copy, m->plan->root_pem);
	if (rc == 0)
		rc = link_by_hash(copy, m->plan->root_pem);
	return rc == 0 ? mounts_attach(copy, TRUST_DIRECTORY, false) : rc;
}

/* Everything is written: from here on the directory is read-only. */
static int trust_seal(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	return mount_setattr(AT_FDCWD, TRUST_DIRECTORY, 0, &attr, sizeof(attr)) != 0 ? -errno : 0;
}

int trust_mounts(struct mounts *m, struct failure *failure)
{
	char copy[64];
	bool directory = access(TRUST_DIRECTORY, F_OK) == 0;
	int rc = directory ? trust_directory(m, copy, sizeof(copy)) : 0;

	if (!directory && !bundle_system_path())
		log_warn("%s is missing, and every other bundle: programs in the sandbox will not "
		         "trust its CA (install the package ca-certificates)",
		        TRUST_DIRECTORY);
	if (rc == 0)
		rc = trust_bundles(m);
	if (rc == 0)
		rc = trust_keystores(m);
	if (rc == 0)
		rc = trust_anchors(m);
	if (rc == 0 && directory)
		rc = trust_seal();
	if (rc != 0)
		return failure_set(
		        failure, rc, "cannot put the sandbox's CA into the trust stores");
	rc = nss_store_mount(m);
	if (rc != 0)
		log_warn("the CA could not be added to the user's NSS database: %s", strerror(-rc));
	return 0;
}
