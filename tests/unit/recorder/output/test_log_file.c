/* SPDX-License-Identifier: Apache-2.0 */
/* Continuing files that other runs, crashes and people have left. recorder/test_batch_writer.c
 * tests what happens while writing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"

#include "recorder/output/log_file.h"
#include "recorder/ocsf/ocsf.h"

#include "../samples.h"

static char path[64];
static struct ocsf_sandbox sandbox;

static int set_up(void **state)
{
	(void)state;
	log_open("test", LOG_LEVEL_ERROR);
	snprintf(path, sizeof(path), "/tmp/test_log_file.%d", getpid());
	unlink(path);
	return ocsf_sandbox_init(&sandbox, 1, SLICE("a"), SLICE("p"), SLICE("f"));
}

static int tear_down(void **state)
{
	(void)state;
	ocsf_sandbox_fini(&sandbox);
	unlink(path);
	return 0;
}

static void open_log(struct log_file *log)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(log_file_open(log, fd, open(path, O_RDONLY | O_CLOEXEC),
	                         slice_from_string(path), 1 << 20),
	        0);
}

/* One run that writes n lines; the link it continued from is in *from. */
static void write_lines(unsigned n, struct seal_link *from, struct seal_link *to)
{
	struct log_file log;
	struct event event = sample_http();

	open_log(&log);
	assert_int_equal(log_file_begin(&log), 0);
	*from = log.chain.last;
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ocsf_append(&log.pending, &log.chain, &sandbox, &event), 0);
	assert_int_equal(log_file_flush(&log), 0);
	assert_int_equal(log_file_sync(&log), 0);
	*to = log.chain.last;
	log_file_close(&log);
}

static void append_text(const char *text)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_new_file_begins_a_chain(void **state)
{
	struct seal_link from, to;

	(void)state;
	write_lines(1, &from, &to);
	assert_false(from.has_previous);
	assert_true(to.has_previous);
	assert_int_equal(strlen(to.chain_uid), SEAL_CHAIN_DIGITS);
}

static void test_next_run_continues(void **state)
{
	struct seal_link from, to, first;

	(void)state;
	write_lines(3, &from, &first);
	write_lines(2, &from, &to);
	assert_memory_equal(&from, &first, sizeof(first));
	assert_string_equal(to.chain_uid, first.chain_uid);
}

static void test_torn_line_is_ended_and_the_chain_goes_on(void **state)
{
	struct seal_link from, to, first;
	struct stat st;
	char *text;
	int fd;

	(void)state;
	write_lines(2, &from, &first);
	append_text("{\"time\":173212");
	write_lines(1, &from, &to);
	assert_string_equal(from.hash, first.hash);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
	assert_non_null(strstr(text, "{\"time\":173212\n{\"time\":"));
	free(text);
	close(fd);
}

static void assert_starts_anew(const char *text)
{
	struct seal_link from, to, first;

	unlink(path);
	write_lines(1, &from, &first);
	append_text(text);
	write_lines(1, &from, &to);
	assert_false(from.has_previous);
	assert_string_not_equal(from.chain_uid, first.chain_uid);
}

static void test_foreign_last_line_starts_a_new_chain(void **state)
{
	(void)state;
	assert_starts_anew("hello\n");
	assert_starts_anew("\n");
	assert_starts_anew("{}\n");
}

static void test_changed_last_line_starts_a_new_chain(void **state)
{
	struct seal_link from, to, first;
	int fd;

	(void)state;
	write_lines(1, &from, &first);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "9", 1, 8), 1); /* a digit of the time */
	close(fd);
	write_lines(1, &from, &to);
	assert_false(from.has_previous);
}

static void test_only_a_torn_line(void **state)
{
	struct seal_link from, to;

	(void)state;
	append_text("torn");
	write_lines(1, &from, &to);
	assert_false(from.has_previous);
}

static void test_huge_last_line(void **state)
{
	static char text[4 * OCSF_LINE_MAX];
	struct seal_link from, to;

	(void)state;
	memset(text, 'x', sizeof(text) - 2);
	text[sizeof(text) - 2] = '\n';
	append_text(text);
	write_lines(1, &from, &to);
	assert_false(from.has_previous);
}

/* Emptied under our feet (copytruncate): a new chain, not a link into nothing. */
static void test_truncated_while_open(void **state)
{
	struct log_file log;
	struct event event = sample_http();

	(void)state;
	open_log(&log);
	assert_int_equal(log_file_begin(&log), 0);
	assert_int_equal(ocsf_append(&log.pending, &log.chain, &sandbox, &event), 0);
	assert_int_equal(log_file_flush(&log), 0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(log_file_begin(&log), 0);
	assert_false(log.chain.last.has_previous);
	log_file_close(&log);
}

static void test_every_error_has_advice(void **state)
{
	static const int errors[] = {
	        ENOSPC, EDQUOT, EFBIG, EAGAIN, EROFS, ENOLCK, ENOMEM, ESTALE, EIO};
	struct log_file log;
	char text[2048];

	(void)state;
	open_log(&log);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		log_file_explain(&log, -errors[i], text, sizeof(text));
		assert_non_null(strstr(text, path));
		assert_non_null(strstr(text, strerror(errors[i])));
	}
	log_file_close(&log);
}

static void test_full_device(void **state)
{
	struct log_file log;
	struct event event = sample_http();
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	size_t n;

	(void)state;
	assert_int_equal(log_file_open(&log, fd, dup(fd), SLICE("/dev/full"), 1 << 20), 0);
	assert_int_equal(log_file_begin(&log), 0);
	assert_int_equal(ocsf_append(&log.pending, &log.chain, &sandbox, &event), 0);
	n = log.pending.len;
	assert_int_equal(log_file_flush(&log), -ENOSPC);
	assert_int_equal(log.pending.len, n);
	log_file_close(&log);
}

/* Of a file that is empty. */
static struct seal_link last_behind(struct slice mark)
{
	struct seal_link last;
	struct log_file log;

	open_log(&log);
	log_file_follow(&log, mark);
	assert_int_equal(log_file_begin(&log), 0);
	last = log.chain.last;
	log_file_close(&log);
	return last;
}

/* An empty file follows the line that was marked; an invalid mark is ignored, and so is any
 * mark if the file has lines of its own. */
static void test_marked_line_goes_before(void **state)
{
	enum { DIGITS = CHAIN_MARK_BYTES - sizeof(uint64_t) };
	uint8_t mark[CHAIN_MARK_BYTES], bad[CHAIN_MARK_BYTES];
	struct seal_link from, to;
	struct log_file log;

	(void)state;
	write_lines(2, &from, &to);
	open_log(&log);
	assert_int_equal(log_file_begin(&log), 0);
	chain_mark(&log.chain, mark);
	log_file_close(&log);
	unlink(path);
	for (size_t i = 0; i <= DIGITS; i++) {
		memcpy(bad, mark, sizeof(bad));
		if (i < DIGITS)
			bad[i] = i % 2 ? '"' : 0;
		assert_int_equal(last_behind(slice_of(bad, sizeof(bad))).has_previous, i == DIGITS);
		assert_false(last_behind(slice_of(mark, i)).has_previous);
	}
	from = last_behind(slice_of(mark, sizeof(mark)));
	assert_string_equal(from.chain_uid, to.chain_uid);
	assert_string_equal(from.uid, to.uid);
	assert_string_equal(from.hash, to.hash);
	assert_int_equal(from.type_uid, to.type_uid);
	write_lines(1, &from, &to);
	open_log(&log);
	log_file_follow(&log, slice_of(mark, sizeof(mark)));
	assert_int_equal(log_file_begin(&log), 0);
	assert_string_equal(log.chain.last.hash, to.hash);
	log_file_close(&log);
}

/* A batch longer than any that is ever begun comes from a damaged journal: it is passed over, and
 * the log goes on. */
static void test_a_batch_that_nobody_began(void **state)
{
	static char batch[(1 << 20) + 1];
	struct log_file log;

	(void)state;
	open_log(&log);
	assert_int_equal(log_file_adopt(&log, slice_of(batch, sizeof(batch)), 0), 0);
	assert_int_equal(log.pending.len, 0);
	assert_false(log.locked);
	assert_int_equal(log_file_adopt(&log, slice_of(batch, sizeof(batch) - 1), 0), 1);
	assert_int_equal(log.pending.len, sizeof(batch) - 1);
	log_file_close(&log);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(test_new_file_begins_a_chain),
	        TEST(test_next_run_continues),
	        TEST(test_torn_line_is_ended_and_the_chain_goes_on),
	        TEST(test_foreign_last_line_starts_a_new_chain),
	        TEST(test_changed_last_line_starts_a_new_chain),
	        TEST(test_only_a_torn_line),
	        TEST(test_huge_last_line),
	        TEST(test_truncated_while_open),
	        TEST(test_marked_line_goes_before),
	        TEST(test_a_batch_that_nobody_began),
	        TEST(test_every_error_has_advice),
	        TEST(test_full_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
