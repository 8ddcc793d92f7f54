/* SPDX-License-Identifier: Apache-2.0 */
/* DELs that are noted while the daemon is away: the files, and what is damaged or hostile among
 * them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cni/deferred.h"
#include "cni/sandbox.h"

static char top[64], notes[128], socket_path[128];

static int fresh(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/vethguard-cni-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(notes, sizeof(notes), "%s/" CNI_DEFERRED_FOLDER, top);
	snprintf(socket_path, sizeof(socket_path), "%s/control.sock", top);
	return 0;
}

static int done(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

static struct cni_request about(void)
{
	return (struct cni_request){.command = CNI_DEL,
	        .version = "1.0.0",
	        .container = "c0ffee",
	        .netns = "",
	        .interface = "eth0",
	        .network = "agents",
	        .socket = socket_path};
}

static void path_of_note(const struct cni_request *request, char out[256])
{
	char name[CNI_SANDBOX_NAME_MAX + 1];

	cni_sandbox_name(request, name);
	snprintf(out, 256, "%s/%s", notes, name);
}

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	mkdir(notes, 0700);
	snprintf(path, sizeof(path), "%s/%s", notes, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool is_there(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", notes, name);
	return access(path, F_OK) == 0;
}

static void a_note(void **state)
{
	struct cni_request request = about();
	char path[256];
	struct stat st;

	(void)state;
	assert_true(cni_deferred_note(&request));
	assert_true(cni_deferred_note(&request)); /* again */
	path_of_note(&request, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(notes, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	cni_deferred_do(&request); /* nobody listens: it stays */
	assert_int_equal(access(path, F_OK), 0);
}

/* Unfinished notes go with the next call, if whoever wrote them is dead. */
static void an_abandoned_note(void **state)
{
	static const char *const others[] = {".", "..", ".name", ".name.", ".name.x", ".name.0",
	        ".name.-1", ".name.99999999999", ".name.12x"};
	struct cni_request request = about();
	char dead[32], own[32];
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	snprintf(dead, sizeof(dead), ".name.%d", (int)child);
	snprintf(own, sizeof(own), ".name.%d", (int)getpid());
	put(dead, "{");
	put(own, "{");
	for (size_t i = 2; i < sizeof(others) / sizeof(others[0]); i++)
		put(others[i], "{");
	cni_deferred_do(&request);
	assert_false(is_there(dead));
	assert_true(is_there(own));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_true(is_there(others[i]));
}

static void no_directory(void **state)
{
	struct cni_request request = about();

	(void)state;
	snprintf(socket_path, sizeof(socket_path), "%s/nowhere/control.sock", top);
	assert_true(
	        cni_deferred_note(&request)); /* no daemon since the start: nothing is guarded */
	cni_deferred_do(&request);
}

static void a_file_in_the_way(void **state)
{
	struct cni_request request = about();
	int fd = open(notes, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_false(cni_deferred_note(&request));
	cni_deferred_do(&request);
}

/* A link is not followed, neither when it is written nor when it is read. */
static void a_link(void **state)
{
	struct cni_request request = about();
	char path[256], other[128];
	struct stat st;

	(void)state;
	snprintf(other, sizeof(other), "%s/other", top);
	put("damaged", "{");
	path_of_note(&request, path);
	assert_int_equal(symlink(other, path), 0);
	assert_true(cni_deferred_note(&request)); /* in the place of the link */
	assert_int_equal(stat(other, &st), -1);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

/* Another DEL reads the notes meanwhile: it would take an incomplete note for a damaged one,
 * and remove it. */
static void no_room_for_a_note(void **state)
{
	struct cni_request request = about();
	struct rlimit limit, none;
	char path[256];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_false(cni_deferred_note(&request));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	path_of_note(&request, path);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(notes), 0); /* nothing is left */
}

static void damaged_notes(void **state)
{
	static const char *const damaged[] = {"", "{", "[]",
	        "{\"network\":1,\"container\":\"c\",\"interface\":\"eth0\"}",
	        "{\"network\":\"n\",\"container\":\"../c\",\"interface\":\"eth0\"}",
	        "{\"network\":\"n\",\"container\":\"c\",\"interface\":\"sixteen-letters-\"}",
	        "{\"network\":\"n\",\"network\":\"m\",\"container\":\"c\",\"interface\":\"eth0\"}"};
	struct cni_request request = about();
	char name[16], text[CNI_DEFERRED_BYTES_MAX + 64];

	(void)state;
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		snprintf(name, sizeof(name), "note%zu", i);
		put(name, damaged[i]);
	}
	memset(text, ' ', sizeof(text));
	memcpy(text + sizeof(text) - 64,
	        "{\"network\":\"n\",\"container\":\"c\",\"interface\":\"eth0\"}", 51);
	text[sizeof(text) - 1] = '\0';
	put("long", text);
	put("good", "{\"network\":\"n\",\"container\":\"c\",\"interface\":\"eth0\"}");
	put(".hidden", "{");
	cni_deferred_do(&request);
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		snprintf(name, sizeof(name), "note%zu", i);
		assert_false(is_there(name));
	}
	assert_false(is_there("long"));
	assert_true(is_there("good")); /* until a daemon answers */
	assert_true(is_there(".hidden"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, done)
int main(void)
{
	const struct CMUnitTest tests[] = {CASE(a_note), CASE(an_abandoned_note),
	        CASE(no_directory), CASE(a_file_in_the_way), CASE(a_link), CASE(no_room_for_a_note),
	        CASE(damaged_notes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
