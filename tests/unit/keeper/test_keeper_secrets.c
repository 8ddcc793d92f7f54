/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a value is in the keeper's memory, examined from outside through /proc: only in locked
 * pages that no core dump takes, and nowhere once its time is over. Needs to read another process's
 * memory: skipped without root.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "keeper_fixture.h"
#include "vethguard/base/clock.h"

#define VALUE "Xq7-the-value-that-must-not-be-found-Zk3v"
#define TRIES_MAX 30
#define MAPPING_MAX (64u << 20) /* larger ones are a sanitizer's reserved space */

static char proc_text[1 << 20];

static size_t read_proc(pid_t pid, const char *name)
{
	char path[64];
	size_t n = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	while ((got = read(fd, proc_text + n, sizeof(proc_text) - 1 - n)) > 0)
		n += (size_t)got;
	proc_text[n] = 0;
	close(fd);
	return n;
}

/* AddressSanitizer makes mlock() do nothing. */
#ifdef __SANITIZE_ADDRESS__
#define IS_LOCKED(flags) true
#else
#define IS_LOCKED(flags) (strstr(flags, " lo") != NULL)
#endif

struct places {
	size_t locked, unlocked; /* mappings that hold the value */
	size_t scanned;          /* mappings read */
};

/* Looks for the value in one mapping; p: its entry in smaps, to the line of flags. */
static void look_into(
        int mem, unsigned long start, unsigned long end, const char *flags, struct places *places)
{
	size_t n = end - start;
	char *copy;

	if (n > MAPPING_MAX)
		return;
	copy = malloc(n);
	assert_non_null(copy);
	if (pread(mem, copy, n, (off_t)start) == (ssize_t)n) {
		bool hardened = IS_LOCKED(flags) && strstr(flags, " dd");

		places->scanned++;
		if (memmem(copy, n, VALUE, sizeof(VALUE) - 1)) {
			places->locked += hardened;
			places->unlocked += !hardened;
		}
	}
	free(copy);
}

static struct places find_value(pid_t pid)
{
	struct places places = {0};
	unsigned long start = 0, end = 0;
	char path[64], *save = NULL;
	int mem;

	read_proc(pid, "smaps");
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDONLY);
	assert_true(mem >= 0);
	for (char *line = strtok_r(proc_text, "\n", &save); line;
	        line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "VmFlags:", 8) == 0)
			look_into(mem, start, end, line, &places);
		else if (strchr("0123456789abcdef", line[0]))
			assert_int_equal(sscanf(line, "%lx-%lx", &start, &end), 2);
	}
	close(mem);
	return places;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void test_value_lies_in_locked_memory_only(void **state)
{
	struct fixture f;
	struct places places;
	int worker, status;

	(void)state;
	need_root();
	fixture_start(&f);
	worker = fixture_sandbox(&f, 1, 2, 1, 0);
	places = find_value(f.pid);
	assert_true(places.scanned > 5);
	assert_int_equal(places.locked + places.unlocked, 0);
	/* Its time to live stands still with the keeper; where that was too late, it is fetched
	 * again. */
	for (int64_t began_ms, left = TRIES_MAX;;) {
		began_ms = clock_monotonic_ms();
		fixture_fetch(&f, worker, 1, 0, VALUE);
		assert_int_equal(kill(f.pid, SIGSTOP), 0);
		assert_int_equal(waitpid(f.pid, &status, WUNTRACED), f.pid);
		places = find_value(f.pid);
		assert_int_equal(kill(f.pid, SIGCONT), 0);
		assert_int_equal(places.unlocked, 0);
		if (places.locked > 0)
			break;
		assert_true(clock_monotonic_ms() - began_ms >= 1000 && left-- > 0);
	}
	/* The time to live is over: it is gone. */
	for (int64_t end_ms = clock_monotonic_ms() + WAIT_MS;;) {
		usleep(50 * 1000);
		places = find_value(f.pid);
		assert_int_equal(places.unlocked, 0);
		if (places.locked == 0)
			break;
		assert_true(clock_monotonic_ms() < end_ms);
	}
	close(worker);
	assert_int_equal(fixture_end(&f), 0);
}

static void test_value_goes_with_its_worker(void **state)
{
	struct fixture f;
	struct places places;
	int worker, other;

	(void)state;
	need_root();
	fixture_start(&f);
	worker = fixture_sandbox(&f, 1, 1, 0, 0);
	fixture_fetch(&f, worker, 1, 0, VALUE);
	close(worker);
	/* A round trip, so that the end was seen. */
	other = fixture_sandbox(&f, 2, 1, 0, 0);
	fixture_fetch(&f, other, 2, 0, "something-else");
	places = find_value(f.pid);
	assert_int_equal(places.locked + places.unlocked, 0);
	close(other);
	assert_int_equal(fixture_end(&f), 0);
}

/* Bytes read before a source failed are wiped too, and so is a value that was too long. */
static void test_refused_value_is_wiped(void **state)
{
	struct fixture f;
	struct places places;
	int worker, pipe_fds[2];
	uint64_t id;

	(void)state;
	need_root();
	fixture_start(&f);
	worker = fixture_sandbox(&f, 1, 2, 0, 100);
	id = fixture_ask(&f, worker, 0);
	fixture_give(&f, fixture_expect_open(&f, 1, 0),
	        fixture_file(VALUE "\nsecond line", sizeof(VALUE) + 11), NULL);
	fixture_expect_refusal(worker, id, "more than one line");
	id = fixture_ask(&f, worker, 1);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(write(pipe_fds[1], VALUE, sizeof(VALUE) - 1), sizeof(VALUE) - 1);
	fixture_give(&f, fixture_expect_open(&f, 1, 1), pipe_fds[0], NULL);
	fixture_expect_refusal(worker, id, "does not end in time");
	places = find_value(f.pid);
	assert_int_equal(places.locked + places.unlocked, 0);
	close(pipe_fds[1]);
	close(worker);
	assert_int_equal(fixture_end(&f), 0);
}

static void test_nothing_in_proc_and_no_core(void **state)
{
	struct fixture f;
	struct stat st;
	char path[64];
	int worker;
	size_t n;

	(void)state;
	need_root();
	fixture_start(&f);
	worker = fixture_sandbox(&f, 1, 1, 0, 0);
	fixture_fetch(&f, worker, 1, 0, VALUE);
	n = read_proc(f.pid, "cmdline");
	assert_true(n > 0);
	assert_null(memmem(proc_text, n, VALUE, 8));
	n = read_proc(f.pid, "environ");
	assert_null(memmem(proc_text, n, VALUE, 8));
	read_proc(f.pid, "limits");
	assert_non_null(strstr(proc_text, "Max core file size        0                    0"));
	read_proc(f.pid, "status");
	assert_null(strstr(proc_text, "\nUid:\t0"));
	assert_non_null(strstr(proc_text, "\nCapPrm:\t0000000000000000"));
	assert_non_null(strstr(proc_text, "\nCapEff:\t0000000000000000"));
	assert_non_null(strstr(proc_text, "\nNoNewPrivs:\t1"));
	assert_non_null(strstr(proc_text, "\nSeccomp:\t2"));
	/* proc(5): a process that is not dumpable has its files owned by root, whoever it runs as.
	 */
	snprintf(path, sizeof(path), "/proc/%d/limits", f.pid);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	/* And a signal that dumps core is only an end. */
	kill(f.pid, SIGQUIT);
	n = (size_t)fixture_wait(&f);
	assert_int_equal(n, 1000 + SIGQUIT);
	close(worker);
	close(f.supervisor);
}

/* A zombie that its new parent has not waited for yet has no executable any more. */
static bool is_running(pid_t pid)
{
	char path[64], target[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, target, sizeof(target)) >= 0;
}

static void test_dies_with_its_supervisor_process(void **state)
{
	struct fixture f;
	int report[2];
	pid_t middle, keeper = 0;

	(void)state;
	assert_int_equal(pipe(report), 0);
	middle = fork();
	if (middle == 0) {
		fixture_start(&f);
		if (write(report[1], &f.pid, sizeof(f.pid)) != sizeof(f.pid))
			_exit(1);
		pause();
	}
	close(report[1]);
	assert_int_equal(read(report[0], &keeper, sizeof(keeper)), sizeof(keeper));
	kill(middle, SIGKILL);
	waitpid(middle, NULL, 0);
	for (int i = 0; i < 200 && is_running(keeper); i++)
		usleep(10 * 1000);
	assert_false(is_running(keeper));
	close(report[0]);
}

/* A worker's question while its sandbox ends is refused, and is not a finding. */
static void test_the_end_of_a_sandbox_is_no_fault(void **state)
{
	int said[2], worker;
	struct fixture f;
	char text[256];
	uint64_t id;

	(void)state;
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	fixture_stderr = said[1];
	fixture_start(&f);
	close(said[1]);
	worker = fixture_sandbox(&f, 1, 2, 0, 0);
	id = fixture_ask(&f, worker, 0);
	fixture_give(&f, fixture_expect_open(&f, 1, 0), -1, "");
	fixture_expect_refusal(worker, id, "The sandbox is ending.");
	close(worker);
	assert_int_equal(fixture_end(&f), 0);
	assert_int_equal(read(said[0], text, sizeof(text)), 0);
	close(said[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_value_lies_in_locked_memory_only),
	        cmocka_unit_test(test_value_goes_with_its_worker),
	        cmocka_unit_test(test_refused_value_is_wiped),
	        cmocka_unit_test(test_nothing_in_proc_and_no_core),
	        cmocka_unit_test(test_the_end_of_a_sandbox_is_no_fault),
	        cmocka_unit_test(test_dies_with_its_supervisor_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
