/* SPDX-License-Identifier: Apache-2.0 */
/* Makes programs trust the session's CA: by a bundle of it and the system's CAs, and by the
 * system's own stores. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connect.h"
#include "vethguard/base/log.h"
#include "vethguard/tls/bundle.h"

/* Where systems look for further CAs, and the program that adds these to their stores. */
static const struct {
	const char *directory, *program;
} stores[] = {
        {"/usr/local/share/ca-certificates", "update-ca-certificates"}, /* Debian, Ubuntu, Alpine */
        {"/etc/pki/ca-trust/source/anchors", "update-ca-trust"},        /* Fedora, RHEL */
        {"/etc/ca-certificates/trust-source/anchors", "update-ca-trust"}, /* Arch */
        {"/etc/pki/trust/anchors", "update-ca-certificates"},             /* SUSE */
};

/* Appends a file of PEM to out, and a line end, because the file's last one may be missing. */
static bool append(int out, const char *path)
{
	char block[16384];
	ssize_t n = -1;
	int in = open(path, O_RDONLY | O_CLOEXEC);

	while (in >= 0 && (n = read(in, block, sizeof(block))) > 0)
		if (write(out, block, (size_t)n) != n)
			n = -1;
	if (in >= 0)
		close(in);
	if (n == 0 && write(out, "\n", 1) == 1)
		return true;
	log_error("%s cannot be copied: %s", path, strerror(errno));
	return false;
}

static bool write_file(const char *path, const char *first, const char *second)
{
	char beside[4096];
	bool good;
	int out;

	snprintf(beside, sizeof(beside), "%s.new", path);
	unlink(beside);
	out = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (out < 0) {
		log_error("%s cannot be written: %s", beside, strerror(errno));
		return false;
	}
	good = (!first || append(out, first)) && append(out, second);
	if (close(out) < 0 || (good && rename(beside, path) < 0)) {
		log_error("%s cannot be written: %s", path, strerror(errno));
		good = false;
	}
	if (!good)
		unlink(beside);
	return good;
}

bool trust_write_bundle(const struct arguments *a)
{
	return write_file(a->bundle, bundle_system_path(), a->ca);
}

/* Adds the CA to Java's store, which has a format of its own. On some systems the programs above
 * have added it there already. */
static void install_java(const struct arguments *a)
{
	const char *const command[] = {"keytool", "-importcert", "-noprompt", "-cacerts",
	        "-storepass", "changeit", "-alias", "vethguard-connect", "-file", a->ca, NULL};
	const int status = command_run(command, NULL);

	if (status && status != 127)
		log_debug("keytool: exit status %d; the CA may be in its store already", status);
}

bool trust_install(const struct arguments *a)
{
	char path[256];

	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		if (access(stores[i].directory, W_OK) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/vethguard-connect.crt", stores[i].directory);
		if (!write_file(path, NULL, a->ca))
			return false;
		if (command_run((const char *const[]){stores[i].program, NULL}, NULL) == 0) {
			install_java(a);
			return true;
		}
		log_error("%s fails, so the CA is not trusted", stores[i].program);
		return false;
	}
	log_error(
	        "no trust store of this system can be changed; --trust needs root and the package "
	        "ca-certificates");
	return false;
}
