/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts into a container and writes into its root: links that lead out, and things that are not
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/trust.h"

#define PEM "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

static char folder[] = "/tmp/vethguard-trust-XXXXXX";
static struct config config;
static struct entry entry;
static struct environment env;
static struct fault fault;
static json_t *answer;

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
	char command[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	assert_int_equal(system(command), 0);
}

static int begin(void **state)
{
	(void)state;
	shell("rm -rf %s/* && mkdir -p %s/rootfs/etc/ssl/certs %s/entry %s/outside && echo secret "
	      ">%s/outside/file",
	        folder, folder, folder, folder, folder);
	fault.text[0] = '\0';
	snprintf(config.bundle, sizeof(config.bundle), "%s", folder);
	config.root = json_pack("{s:{s:s}, s:{}}", "root", "path", "rootfs", "process");
	snprintf(entry.path, sizeof(entry.path), "%s/entry", folder);
	answer = json_pack("{s:s, s:[s, s], s:[{s:s, s:s}]}", "ca_pem", PEM, "nameservers",
	        "198.18.0.1", "fd00::1", "variables", "name", "KEY", "value", "placeholder");
	environment_init(&env);
	return 0;
}

static int end(void **state)
{
	(void)state;
	environment_fini(&env);
	json_decref(answer);
	config_free(&config);
	return 0;
}

/* The source that is mounted over the path, or NULL. */
static const char *mounted(const char *path)
{
	const json_t *mounts = json_object_get(config.root, "mounts");

	for (size_t i = 0; i < json_array_size(mounts); i++)
		if (strcmp(json_string_value(
		                   json_object_get(json_array_get(mounts, i), "destination")),
		            path) == 0)
			return json_string_value(
			        json_object_get(json_array_get(mounts, i), "source"));
	return NULL;
}

static void assert_content(const char *path, const char *text)
{
	static char found[4096];
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(found, text);
}

static void test_image_without_anything(void **state)
{
	(void)state;
	assert_true(trust_install(&config, &entry, answer, &env, &fault));
	assert_content(mounted(TRUST_RESOLV),
	        "nameserver 198.18.0.1\nnameserver fd00::1\noptions timeout:2 attempts:2\n");
	assert_content(mounted(TRUST_BUNDLE), PEM);
	assert_content(mounted(TRUST_CA), PEM);
	assert_string_equal(environment_get(&env, "SSL_CERT_FILE"), TRUST_BUNDLE);
	assert_string_equal(environment_get(&env, "NODE_EXTRA_CA_CERTS"), TRUST_CA);
	assert_string_equal(environment_get(&env, "KEY"), "placeholder");
	assert_null(environment_get(&env, "SSL_CERT_DIR"));
}

/* The image's own CAs stay; two names of one file are one mount. */
static void test_own_bundles(void **state)
{
	(void)state;
	shell("cd %s/rootfs && echo own >etc/ssl/certs/ca-certificates.crt && ln -s "
	      "certs/ca-certificates.crt etc/ssl/cert.pem "
	      "&& mkdir -p etc/pki/tls/certs && echo other >etc/pki/tls/certs/ca-bundle.crt",
	        folder);
	assert_true(trust_install(&config, &entry, answer, &env, &fault));
	assert_content(mounted(TRUST_BUNDLE), "own\n\n" PEM);
	assert_content(mounted("/etc/pki/tls/certs/ca-bundle.crt"), "other\n\n" PEM);
	assert_null(mounted("/etc/ssl/cert.pem"));
}

/* Absolute and relative links stay inside; nothing of the host gets into a bundle. */
static void test_links_out(void **state)
{
	(void)state;
	shell("cd %s/rootfs && ln -s %s/outside/file etc/ssl/certs/ca-certificates.crt && "
	      "ln -s ../../../../../../../../%s/outside/file etc/ssl/cert.pem && mkdir -p "
	      "etc/pki/tls && "
	      "ln -s /proc/self/root%s/outside etc/pki/tls/certs",
	        folder, folder, folder, folder);
	shell("mv %s/outside/file %s/outside/ca-bundle.crt", folder, folder);
	assert_true(trust_install(&config, &entry, answer, &env, &fault));
	assert_content(mounted(TRUST_BUNDLE),
	        PEM); /* the link leads to nothing: as if there were no file */
	assert_null(mounted("/etc/ssl/cert.pem"));
	assert_null(mounted("/etc/pki/tls/certs/ca-bundle.crt"));
}

static void test_no_files(void **state)
{
	(void)state;
	shell("cd %s/rootfs && mkfifo etc/ssl/certs/ca-certificates.crt && mkdir etc/ssl/cert.pem "
	      "&& "
	      "truncate -s 9M etc/ssl/ca-bundle.pem && ln -s cert.pem2 etc/ssl/cert.pem2",
	        folder);
	assert_true(trust_install(&config, &entry, answer, &env, &fault));
	assert_null(mounted(TRUST_BUNDLE));
	assert_null(mounted("/etc/ssl/cert.pem"));
	assert_null(mounted("/etc/ssl/ca-bundle.pem"));
	assert_null(environment_get(&env, "SSL_CERT_FILE"));
}

/* Paths that the container's own mounts cover are left alone, except the engine's resolv.conf. */
static void test_covered(void **state)
{
	(void)state;
	json_object_set_new(config.root, "mounts",
	        json_pack("[{s:s, s:s}, {s:s, s:s}]", "destination", "/etc/ssl/certs", "source",
	                "/theirs", "destination", TRUST_RESOLV, "source", "/engines"));
	assert_true(trust_install(&config, &entry, answer, &env, &fault));
	assert_null(mounted(TRUST_BUNDLE));
	assert_null(mounted(TRUST_CA));
	assert_string_equal(mounted("/etc/ssl/certs"), "/theirs");
	assert_string_not_equal(mounted(TRUST_RESOLV), "/engines");
}

static void test_no_root(void **state)
{
	(void)state;
	shell("rm -r %s/rootfs", folder);
	assert_false(trust_install(&config, &entry, answer, &env, &fault));
	assert_non_null(strstr(fault.text, "root directory"));
	fault.text[0] = '\0';
	assert_false(trust_write(&config, answer, &fault));
}

static void test_written(void **state)
{
	char path[256];

	(void)state;
	shell("echo own >%s/rootfs/etc/ssl/cert.pem", folder);
	for (int again = 0; again < 2; again++)
		assert_true(trust_write(&config, answer, &fault));
	snprintf(path, sizeof(path), "%s/rootfs" TRUST_RESOLV, folder);
	assert_content(path, "nameserver 198.18.0.1\nnameserver fd00::1\n");
	snprintf(path, sizeof(path), "%s/rootfs" TRUST_BUNDLE, folder);
	assert_content(path, PEM);
	snprintf(path, sizeof(path), "%s/rootfs/etc/ssl/cert.pem", folder);
	assert_content(path, "own\n\n" PEM);
}

/* Links of the image do not make the hook write to the host. */
static void test_written_nowhere_else(void **state)
{
	char path[256];

	(void)state;
	shell("cd %s/rootfs && ln -s %s/outside/file etc/resolv.conf && ln -s %s/outside/file "
	      "etc/ssl/certs/vethguard.pem && "
	      "ln -s ../../../../../../..%s/outside/file etc/ssl/cert.pem",
	        folder, folder, folder, folder);
	(void)trust_write(&config, answer, &fault);
	snprintf(path, sizeof(path), "%s/outside/file", folder);
	assert_content(path, "secret\n");
	shell("cd %s/rootfs && rm etc/resolv.conf && mkfifo etc/resolv.conf", folder);
	fault.text[0] = '\0';
	assert_false(trust_write(&config, answer, &fault));
}

static void mount_resolver(const char *source)
{
	json_object_set_new(config.root, "mounts",
	        json_pack("[{s:s, s:s}]", "destination", TRUST_RESOLV, "source", source));
}

/* The file that an engine made for the container gets the guard's name server. */
static void test_written_to_the_engines_resolver(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/outside/vfs-containers/%064d/userdata/resolv.conf", folder,
	        7);
	shell("mkdir -p $(dirname %s) && echo a long line of the engine, that is gone >%s", path,
	        path);
	mount_resolver(path);
	assert_true(trust_write(&config, answer, &fault));
	assert_content(path, "nameserver 198.18.0.1\nnameserver fd00::1\n");
	shell("mv %s %s.moved && ln -s resolv.conf.moved %s", path, path, path);
	assert_false(trust_write(&config, answer, &fault));
	fault.text[0] = '\0';
	shell("rm %s && mkfifo %s", path, path);
	assert_false(trust_write(&config, answer, &fault));
}

/* A file of the host that a user mounts there, perhaps only for reading, is not written to. */
static void test_written_to_no_file_of_the_host(void **state)
{
	static const char *const names[] = {"outside/resolv.conf", "outside/userdata/resolv.conf",
	        "outside/vfs-containers/abc/userdata/resolv.conf",
	        "outside/0000000000000000000000000000000000000000000000000000000000000000/userdata/"
	        "resolv.conf"};
	char path[512];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fault.text[0] = '\0';
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		shell("mkdir -p $(dirname %s) && echo precious >%s", path, path);
		mount_resolver(path);
		assert_false(trust_write(&config, answer, &fault));
		assert_content(path, "precious\n");
		assert_non_null(strstr(fault.text, path));
	}
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	shell("rm -r %s", folder);
	return 0;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(test_image_without_anything),
	        CASE(test_own_bundles),
	        CASE(test_links_out),
	        CASE(test_no_files),
	        CASE(test_covered),
	        CASE(test_no_root),
	        CASE(test_written),
	        CASE(test_written_nowhere_else),
	        CASE(test_written_to_the_engines_resolver),
	        CASE(test_written_to_no_file_of_the_host),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
