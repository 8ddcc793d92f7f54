/* SPDX-License-Identifier: Apache-2.0 */
/* Where systems keep their bundles. Apart from bundle.c, so that a program that only looks for them
 * does not load OpenSSL. */
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/tls/bundle.h"

const char *const bundle_paths[] = {"/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem",
        "/etc/ca-certificates/extracted/tls-ca-bundle.pem", "/etc/pki/tls/cert.pem",
        "/etc/ssl/certs/ca-bundle.crt", "/usr/lib/ssl/cert.pem", "/usr/local/etc/openssl/cert.pem",
        "/usr/local/share/certs/ca-root-nss.crt", "/usr/local/lib/ssl/cert.pem", NULL};

const char *bundle_system_path(void)
{
	struct stat st;

	for (const char *const *path = bundle_paths; *path; path++)
		if (stat(*path, &st) == 0 && S_ISREG(st.st_mode) && access(*path, R_OK) == 0)
			return *path;
	return NULL;
}
