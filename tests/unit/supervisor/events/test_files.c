/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept for a restart: who may keep it, rings in store, and what is logged if it cannot be
 * kept.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "supervisor/supervisor.h"
#include "recording_folder.h"

/* Thousands of lines about a full disk would hide what else goes wrong. */
static void what_cannot_be_kept_is_said_once(void **state)
{
	static struct supervisor sv;
	struct recording *r = &sv.recording;
	uint8_t event[8] = "event";
	int log, stderr_fd, told;
	char text[1024];

	(void)state;
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	told = r->told;
	r->told = -1; /* nothing can be written there */
	log = begin_log(&stderr_fd);
	for (uint64_t id = 1; id <= 5; id++)
		recording_keep_event(r, SANDBOX, id, event, sizeof(event));
	end_log(log, stderr_fd, text, sizeof(text));
	assert_non_null(strstr(text, "events cannot be kept for a restart"));
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	r->told = told;
	log = begin_log(&stderr_fd);
	for (uint64_t id = 6; id <= 7; id++)
		recording_keep_event(r, SANDBOX, id, event, sizeof(event));
	end_log(log, stderr_fd, text, sizeof(text));
	assert_non_null(strstr(text, "again; 5 could not"));
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	assert_int_equal(count_files("told"), 2);
	for (uint64_t id = 6; id <= 7; id++)
		recording_remove_event(r, SANDBOX, id);
	recording_fini(&sv);
}

static void a_second_daemon_is_kept_out(void **state)
{
	struct supervisor one = {0}, other = {0};

	(void)state;
	assert_int_equal(recording_keep_at(&one, folder_fd), 0);
	assert_int_equal(recording_keep_at(&other, folder_fd), -EWOULDBLOCK);
	recording_fini(&one);
	assert_int_equal(recording_keep_at(&other, folder_fd), 0);
	assert_true(other.last_id > one.last_id);
	assert_int_equal(other.recording.daemon.id, one.recording.daemon.id);
	recording_fini(&other);
}

/* Everything stays closed, and the log says what would open it. */
static void a_journal_that_cannot_be_opened_is_named(void **state)
{
	struct supervisor sv = {0};
	char text[2048], command[256];
	int log, stderr_fd;

	(void)state;
	assert_int_equal(mkdirat(folder_fd, "journal", 0700), 0);
	log = begin_log(&stderr_fd);
	assert_int_equal(recording_keep_at(&sv, folder_fd), -EISDIR);
	end_log(log, stderr_fd, text, sizeof(text));
	snprintf(command, sizeof(command), "mv -T %s/journal %s/journal.aside", folder, folder);
	assert_non_null(strstr(text, command));
	assert_int_equal(unlinkat(folder_fd, "journal", AT_REMOVEDIR), 0);
}

/* Rings in store have no name until a sandbox gets them; if there is none in store, a ring is made
 * at once. */
static void rings_in_store(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {.supervisor = &sv, .id = SANDBOX};
	char name[RECORDING_NAME_BYTES];

	(void)state;
	recording_prepare_ring(&sv.recording);
	assert_int_equal(sv.recording.ready_count, 0); /* a run's are memory */
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	recording_prepare_ring(&sv.recording);
	for (size_t i = 0; i < 3; i++) {
		struct recorded_ring *ring = recording_ring_new(&sv, &s);

		assert_non_null(ring);
		assert_int_equal(sv.recording.ready_count, 0);
		recording_file_name(SANDBOX, ring->id, name);
		assert_int_equal(faccessat(sv.recording.rings, name, F_OK, 0), 0);
	}
	for (size_t i = 0; i < RECORDING_READY_MAX + 1; i++)
		recording_prepare_ring(&sv.recording);
	assert_int_equal(sv.recording.ready_count, RECORDING_READY_MAX);
	recording_forget(&sv, &s.recorded, true);
	recording_fini(&sv);
	assert_int_equal(sv.recording.ready_count, 0);
}

/* A name that is taken is another ring's: that one stays, and the one in store is given up. */
static void a_ring_in_store_whose_name_is_taken(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {.supervisor = &sv, .id = SANDBOX};
	char name[RECORDING_NAME_BYTES];
	int fd;

	(void)state;
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	recording_prepare_ring(&sv.recording);
	recording_file_name(SANDBOX, sv.last_id + 1, name);
	fd = openat(sv.recording.rings, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_null(recording_ring_new(&sv, &s));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(sv.recording.ready_count, 0);
	assert_null(s.recorded.rings);
	assert_int_equal(unlinkat(sv.recording.rings, name, 0), 0);
	recording_fini(&sv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(
	                what_cannot_be_kept_is_said_once, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_second_daemon_is_kept_out, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_journal_that_cannot_be_opened_is_named, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(rings_in_store, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_ring_in_store_whose_name_is_taken, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
