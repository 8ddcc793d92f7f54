/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in which a role may end, and that its end is reported exactly once and truly. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "../fake_role.h"
#include "still_clock.h"
#include "supervisor/process/role.h"

#define FLOOD_BYTES (1 << 20)

/* The linker wraps: clock_gettime ipc_peer_flush */
int __real_ipc_peer_flush(struct ipc_peer *peer, int timeout_ms);
int __wrap_ipc_peer_flush(struct ipc_peer *peer, int timeout_ms);

static const char *const programs[] = {"fake-good", "fake-crash", "fake-exit", "fake-deaf",
        "fake-nonsense", "fake-hangup", "fake-words", "fake-early", "fake-escapes", "fake-flood",
        "fake-long", "fake-endless", "fake-gifts", "fake-gift", "fake-chatty", "fake-slow",
        "fake-drip"};
#define GIFTS 100
#define DRIP_MS 20   /* as the machine counts */
#define WAIT_MS 1000 /* as the supervisor's clock counts each wait for room */
#define BURST 2000   /* messages with a descriptor: far more than socket and queue hold */

static void write_all(const char *text, size_t n)
{
	/* A hostile role: it makes its end blocking and never gives up. */
	fcntl(STDERR_FILENO, F_SETFL, fcntl(STDERR_FILENO, F_GETFL) & ~O_NONBLOCK);
	while (n > 0) {
		ssize_t done = write(STDERR_FILENO, text, n);

		if (done <= 0)
			_exit(5);
		text += done;
		n -= (size_t)done;
	}
}

static int write_stderr(const char *name)
{
	static char many[FLOOD_BYTES];
	static const char escapes[] =
	        "fake-escapes: error: \x1b]0;owned\x07\x1b[2J\xc2\x9b 31m\r\x7f\\x1b\n"
	        "vethguardd: error: not the supervisor\n\n\0\ntorn";

	if (strcmp(name, "fake-escapes") == 0) {
		write_all(escapes, sizeof(escapes) - 1);
		return 0;
	}
	memset(many, 'A', sizeof(many));
	for (size_t i = 9; strcmp(name, "fake-flood") == 0 && i < sizeof(many); i += 10)
		many[i] = '\n';
	write_all(many, strcmp(name, "fake-long") == 0 ? ROLE_TEXT_LINE_MAX + 5 : sizeof(many));
	return 0;
}

/* A message as it should be, with descriptors that nobody wants. */
static void give_descriptors(size_t count)
{
	int fds[GIFTS];

	for (size_t i = 0; i < count; i++)
		fds[i] = STDERR_FILENO;
	ipc_send_blocking(IPC_SUPERVISOR_FD, fake_out,
	        message_empty(fake_out, sizeof(fake_out), MESSAGE_WORKER_READY, 7), fds, count);
}

/* Reads late, and says so when it has everything. */
static void read_a_burst(void)
{
	struct ipc_message m;
	unsigned got = 0;

	usleep(100000);
	while (got < BURST && ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		got += m.fd_count == 1 && m.head.id == got;
		for (size_t i = 0; i < m.fd_count; i++)
			close(m.fds[i]);
	}
	fake_say(MESSAGE_WORKER_READY, 7);
}

static void read_now_and_then(void)
{
	struct ipc_message m;

	for (;;) {
		usleep(DRIP_MS * 1000);
		while (ipc_receive_blocking(IPC_SUPERVISOR_FD, 0, fake_in, &m) == 0)
			for (size_t i = 0; i < m.fd_count; i++)
				close(m.fds[i]);
	}
}

/* The other side. */
static int play(const char *name)
{
	struct ipc_message m;

	alarm(900);
	if (strcmp(name, "fake-crash") == 0)
		fake_die(SIGSEGV);
	if (strcmp(name, "fake-exit") == 0)
		return 3;
	if (strcmp(name, "fake-escapes") == 0 || strcmp(name, "fake-flood") == 0 ||
	        strcmp(name, "fake-long") == 0 || strcmp(name, "fake-endless") == 0)
		return write_stderr(name);
	if (strcmp(name, "fake-nonsense") == 0)
		(void)!write(IPC_SUPERVISOR_FD, "nonsense", 8);
	if (strcmp(name, "fake-hangup") == 0)
		close(IPC_SUPERVISOR_FD);
	if (strcmp(name, "fake-words") == 0) {
		fake_say_text(MESSAGE_FAILED, 0, "no memory\x1b[2J");
		return 1;
	}
	if (strcmp(name, "fake-early") == 0)
		fake_say_text(MESSAGE_STOPPED, 0, "");
	if (strcmp(name, "fake-gifts") == 0)
		give_descriptors(GIFTS);
	if (strcmp(name, "fake-gift") == 0)
		give_descriptors(1);
	if (strcmp(name, "fake-drip") == 0)
		read_now_and_then();
	if (strcmp(name, "fake-slow") == 0)
		read_a_burst();
	if (strcmp(name, "fake-chatty") == 0)
		for (unsigned i = 0; i < 2 * ROLE_WORKER_BURST; i++)
			fake_say(MESSAGE_WORKER_READY, 7);
	if (strcmp(name, "fake-good") == 0)
		fake_say(MESSAGE_WORKER_READY, 7);
	else if (strcmp(name, "fake-gift") != 0)
		for (;;)
			pause();
	while (ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		if (m.head.type != MESSAGE_STOP)
			continue;
		fake_say_text(MESSAGE_STOPPED, m.head.id, "");
		return 0;
	}
	return 1;
}

static struct loop *loop;
static struct role role;
static int messages, deaths;
static char how_it_died[ROLE_HOW_MAX];

static int on_message(struct role *r, struct ipc_message *message)
{
	messages++;
	assert_ptr_equal(r, &role);
	assert_int_equal(message->head.id, 7);
	loop_stop(loop);
	return 0;
}

static void on_dead(struct role *r, const char *how)
{
	assert_false(role_runs(r));
	deaths++;
	snprintf(how_it_died, sizeof(how_it_died), "%s", how);
	loop_stop(loop);
}

static void start(const char *program)
{
	messages = deaths = 0;
	assert_int_equal(role_start(loop, &role, program, "the test", -1, on_message, on_dead), 0);
	assert_true(role_runs(&role));
}

static void on_time(struct loop_timer *timer)
{
	(void)timer;
	loop_stop(loop);
}

static void expect_end(const char *how)
{
	while (deaths == 0)
		assert_int_equal(loop_run(loop), 0);
	assert_int_equal(deaths, 1);
	assert_string_equal(how_it_died, how);
}

static void good_one_stops_when_asked(void **state)
{
	(void)state;
	start("fake-good");
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(messages, 1);
	role_stop(&role, 1, 10000);
	expect_end("exited (status 0)");
}

static void ends_of_its_own(void **state)
{
	(void)state;
	start("fake-crash");
	expect_end("died (signal 11)");
	start("fake-exit");
	expect_end("exited (status 3)");
}

static void last_words_are_escaped(void **state)
{
	(void)state;
	start("fake-words");
	expect_end("exited (status 1): no memory\\x1b[2J");
}

static void broken_protocol_kills(void **state)
{
	(void)state;
	start("fake-nonsense");
	expect_end("was killed: it broke the protocol");
	start("fake-early");
	expect_end("was killed: it broke the protocol");
}

static size_t descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void descriptors_of_a_role_kill_it_and_are_closed(void **state)
{
	(void)state;
	size_t before = descriptors();
	for (int i = 0; i < 3; i++) {
		start("fake-gifts");
		expect_end("was killed: it broke the protocol");
		assert_int_equal(messages, 0);
	}
	assert_int_equal(descriptors(), before);
}

/* One descriptor with messages of one type, where that is permitted. */
static void a_descriptor_may_be_permitted(void **state)
{
	static const struct {
		const char *program;
		enum message_type permitted;
		bool taken;
	} cases[] = {{"fake-gift", MESSAGE_WORKER_READY, true}, {"fake-gift", MESSAGE_STOP, false},
	        {"fake-gifts", MESSAGE_WORKER_READY, false}};
	size_t before = descriptors();
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		start(cases[i].program);
		role_take_descriptors(&role, cases[i].permitted);
		if (cases[i].taken) {
			while (messages == 0 && deaths == 0)
				assert_int_equal(loop_run(loop), 0);
			role_stop(&role, 1, 10000);
			expect_end("exited (status 0)");
		} else {
			expect_end("was killed: it broke the protocol");
		}
		assert_int_equal(messages, cases[i].taken);
	}
	assert_int_equal(descriptors(), before);
}

/* The number of messages is bounded, in all and over time; without a bound any number may come. */
static void saying_too_much_kills(void **state)
{
	(void)state;
	start("fake-chatty");
	role_bound(&role, ROLE_WORKER_BURST, 0);
	expect_end("was killed: it sent too many messages");
	assert_int_equal(messages, ROLE_WORKER_BURST);
	start("fake-chatty");
	while (messages < 2 * ROLE_WORKER_BURST)
		assert_int_equal(loop_run(loop), 0);
	role_fini(&role);
	assert_int_equal(deaths, 0);
}

static void hanging_up_kills(void **state)
{
	(void)state;
	start("fake-hangup");
	expect_end("died (signal 9)");
}

static int send_burst(void)
{
	uint8_t message[32];
	int error = 0;

	for (unsigned i = 0; i < BURST && !error; i++) {
		size_t n = message_empty(message, sizeof(message), MESSAGE_DESCRIBE, i);

		error = role_send(&role, message, n, (int[]){STDERR_FILENO}, 1);
	}
	return error;
}

static void a_burst_waits_for_its_reader(void **state)
{
	(void)state;
	start("fake-slow");
	role_wait_for_room(&role, 30000, 30000);
	assert_int_equal(send_burst(), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(messages, 1);
	role_fini(&role);
}

static void a_burst_that_nobody_reads_kills(void **state)
{
	(void)state;
	start("fake-deaf");
	role_wait_for_room(&role, 20, 20);
	assert_int_equal(send_burst(), -ENOBUFS);
	expect_end("was killed: No buffer space available");
}

/* Of the role under test: how long it may have waited for room, each time. */
static int waits_ms[64];
static size_t wait_count;

/* With a clock that stands, each wait has taken the same time, however long the reader needed. */
int __wrap_ipc_peer_flush(struct ipc_peer *peer, int timeout_ms)
{
	int64_t after_ms = clock_stands_at_ms + WAIT_MS;
	int result;

	if (!clock_stands)
		return __real_ipc_peer_flush(peer, timeout_ms);
	assert_true(wait_count < sizeof(waits_ms) / sizeof(waits_ms[0]));
	waits_ms[wait_count++] = timeout_ms;
	if (timeout_ms == 0)
		return __real_ipc_peer_flush(peer, 0);
	clock_go();
	result = __real_ipc_peer_flush(peer, 60000);
	clock_stop();
	clock_stands_at_ms = after_ms;
	return result;
}

/* It reads all that there is, but not before it has been waited for a while. */
static void one_that_makes_wait_again_and_again_is_killed(void **state)
{
	static const int allowed[] = {5, 5, 5, 5, 4, 3, 2, 1, 0}; /* of the eight that were left */
	int error = 0;

	(void)state;
	start("fake-drip");
	clock_stop();
	role_wait_for_room(&role, 5 * WAIT_MS, 8 * WAIT_MS);
	for (wait_count = 0; !error;)
		error = send_burst();
	clock_go();
	assert_int_equal(error, -ENOBUFS);
	assert_int_equal(wait_count, sizeof(allowed) / sizeof(allowed[0]));
	for (size_t i = 0; i < wait_count; i++)
		assert_int_equal(waits_ms[i], allowed[i] * WAIT_MS);
	expect_end("was killed: No buffer space available");
}

static void patience_ends(void **state)
{
	(void)state;
	start("fake-deaf");
	role_stop(&role, 1, 20);
	expect_end("was killed: it did not stop when asked to");
}

static void killing_says_why(void **state)
{
	(void)state;
	start("fake-deaf");
	role_kill(&role, "a test wants it");
	expect_end("was killed: a test wants it");
	role_kill(&role, "again");
	role_stop(&role, 1, 1);
	role_fini(&role);
	assert_int_equal(deaths, 1);
}

static void fini_reaps_without_a_word(void **state)
{
	(void)state;
	start("fake-deaf");
	pid_t pid = role.pid;
	role_fini(&role);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(deaths, 0);
}

/* What the file holds, and whether that has the words. */
static bool shows(int file, char *out, size_t size, const char *words)
{
	ssize_t n = pread(file, out, size - 1, 0);

	assert_true(n >= 0);
	out[n] = 0;
	return strstr(out, words);
}

#define SHOWN_MS 60000 /* until the expected words are there */
#define QUIET_MS 300   /* for what may come behind them */

/* Everything that arrives at this process's standard error until the program ends or, where words
 * are given, until a while after them. */
static size_t captured(const char *program, char *out, size_t size, const char *words)
{
	int saved = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
	struct loop_timer timer;

	assert_true(saved >= 0 && file >= 0);
	dup2(file, STDERR_FILENO);
	start(program);
	assert_int_equal(loop_timer_open(loop, &timer, on_time), 0);
	for (int left_ms = words ? SHOWN_MS : 0; left_ms > 0; left_ms -= QUIET_MS) {
		loop_timer_set(&timer, QUIET_MS);
		assert_int_equal(loop_run(loop), 0);
		if (deaths || shows(file, out, size, words))
			left_ms = 0;
	}
	if (words)
		loop_timer_set(&timer, QUIET_MS);
	if (!deaths)
		assert_int_equal(loop_run(loop), 0);
	role_fini(&role);
	loop_timer_close(&timer);
	dup2(saved, STDERR_FILENO);
	close(saved);
	shows(file, out, size, "");
	close(file);
	return strlen(out);
}

static void no_terminal_obeys_a_role(void **state)
{
	char text[4096];

	(void)state;
	captured("fake-escapes", text, sizeof(text), NULL);
	assert_string_equal(text,
	        "fake-escapes: error: \\x1b]0;owned\\x07\\x1b[2J\\xc2\\x9b 31m\\x0d\\x7f\\x1b\n"
	        "fake-escapes: vethguardd: error: not the supervisor\n"
	        "fake-escapes: \\x00\n"
	        "fake-escapes: torn\n");
}

static void a_long_line_becomes_several(void **state)
{
	char text[2 * ROLE_TEXT_LINE_MAX];

	(void)state;
	captured("fake-long", text, sizeof(text), NULL);
	assert_int_equal(strchr(text, '\n') - text, strlen("fake-long: ") + ROLE_TEXT_LINE_MAX);
	assert_string_equal(strchr(text, '\n'), "\nfake-long: AAAAA\n");
}

/* Many lines, and one that never ends. A role that floods is kept waiting; what is shown is
 * bounded, also when the role ends. */
static void nobody_floods_a_terminal(void **state)
{
	static const char *const flooders[] = {"fake-flood", "fake-endless"};
	static const char too_much[] = "writes too much: the rest is not shown";
	static char text[FLOOD_BYTES];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t n = captured(flooders[i], text, sizeof(text), too_much);

		assert_in_range(n, ROLE_TEXT_BURST / 4, ROLE_TEXT_BURST + 2 * ROLE_TEXT_LINE_MAX);
		assert_non_null(strstr(text, too_much));
		assert_int_equal(deaths, 0);
	}
}

static void a_program_that_is_not_there(void **state)
{
	(void)state;
	assert_int_equal(
	        role_start(loop, &role, "fake-none", "the test", -1, on_message, on_dead), -ENOENT);
	assert_false(role_runs(&role));
	role_fini(&role);
}

static int group_setup(void **state)
{
	(void)state;
	loop = loop_new();
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		fake_link(programs[i], true);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		fake_link(programs[i], false);
	loop_free(loop);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(good_one_stops_when_asked),
	        cmocka_unit_test(ends_of_its_own),
	        cmocka_unit_test(last_words_are_escaped),
	        cmocka_unit_test(broken_protocol_kills),
	        cmocka_unit_test(descriptors_of_a_role_kill_it_and_are_closed),
	        cmocka_unit_test(a_descriptor_may_be_permitted),
	        cmocka_unit_test(saying_too_much_kills),
	        cmocka_unit_test(hanging_up_kills),
	        cmocka_unit_test(a_burst_waits_for_its_reader),
	        cmocka_unit_test(a_burst_that_nobody_reads_kills),
	        cmocka_unit_test(one_that_makes_wait_again_and_again_is_killed),
	        cmocka_unit_test(patience_ends),
	        cmocka_unit_test(killing_says_why),
	        cmocka_unit_test(fini_reaps_without_a_word),
	        cmocka_unit_test(no_terminal_obeys_a_role),
	        cmocka_unit_test(a_long_line_becomes_several),
	        cmocka_unit_test(nobody_floods_a_terminal),
	        cmocka_unit_test(a_program_that_is_not_there),
	};

	if (argc > 0 && strncmp(argv[0], "fake-", 5) == 0)
		return play(argv[0]);
	alarm(900);
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
