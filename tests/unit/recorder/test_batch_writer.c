/* SPDX-License-Identifier: Apache-2.0 */
/* From events to lines, and failures to write lines. */
#include "pump_fixture.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

static void test_events_become_lines(void **state)
{
	struct message_summary m;
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_START));
	write_event(&f.ring, sample_http());
	for (int i = 0; i < 3; i++)
		write_event(&f.ring, sample_denied());
	write_event(&f.ring, sample_dns());
	write_event(&f.ring, sample_finding(EVENT_FINDING_DNS_TUNNEL));
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_STOP));
	send_end(&f, SANDBOX, 8);
	m = expect_summary(&f, 8);
	assert_int_equal(m.allowed, 2);
	assert_int_equal(m.denied, 3);
	assert_int_equal(m.findings, 1);
	assert_int_equal(m.lines, 8);
	assert_int_equal(m.unusual_count, 1);
	assert_true(slice_equals(m.unusual[0].what, SLICE("POST https://paste.example")));
	assert_int_equal(m.unusual[0].count, 3);
	assert_int_equal(verify(f.path), 8);
	stop(&f);
	close_fixture(&f);
}

/* Without END or STOP: the batch's own delay writes. */
static void test_lines_appear_by_themselves(void **state)
{
	struct fixture f;
	size_t n = 0;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	for (int round = 0; round < 3; round++) {
		write_event(&f.ring, sample_http());
		for (int i = 0; i < 500 && n != (size_t)round + 1; i++) {
			poll(NULL, 0, 10);
			n = verify(f.path);
		}
		assert_int_equal(n, round + 1);
	}
	close_fixture(&f);
}

static void test_more_than_a_ring(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	for (int i = 0; i < 5000; i++)
		write_event(&f.ring, sample_http());
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 5000);
	assert_int_equal(verify(f.path), 5000);
	stop(&f);
	close_fixture(&f);
}

/* Events that a killed worker left in the ring, and the supervisor's last event behind them. */
static void test_dead_writer_is_drained_in_order(void **state)
{
	struct fixture f;
	size_t n;
	char *text;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	for (int i = 0; i < 100; i++)
		write_event(&f.ring, sample_http());
	ring_close(&f.ring);
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_STOP));
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 101);
	assert_int_equal(verify(f.path), 101);
	text = read_file(f.path, &n);
	text[n - 1] = '\0';
	assert_non_null(strstr(strrchr(text, '\n'), "\"class_uid\":6002"));
	free(text);
	close_fixture(&f);
}

static void expect_broken_stream(struct fixture *f)
{
	struct ipc_message message;
	struct ring other = {0};
	int packets;

	expect_message(f->control, MESSAGE_FAILED, SANDBOX, &message);
	send_end(f, SANDBOX, 8);
	assert_int_equal(expect_summary(f, 8).findings, 1);
	assert_true(file_has(f->path, "broken-event-stream"));
	/* Others live on. */
	add_sandbox(f, SANDBOX + 1, &other, &packets);
	write_event(&other, sample_http());
	send_end(f, SANDBOX + 1, 10);
	assert_int_equal(expect_summary(f, 10).allowed, 1);
	verify(f->path);
	ring_close(&other);
	close(packets);
}

static void test_undecodable_record_ends_its_stream(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	assert_int_equal(ring_write(&f.ring, "nonsense", 8), 0);
	write_event(&f.ring, sample_http());
	expect_broken_stream(&f);
	close_fixture(&f);
}

static void test_forged_kinds_end_the_stream(void **state)
{
	struct event forged[] = {sample_lifecycle(EVENT_STOP), sample_packet()};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture f;

		open_fixture(&f, RLIM_INFINITY);
		write_event(&f.ring, forged[i]);
		expect_broken_stream(&f);
		close_fixture(&f);
	}
}

static void test_impossible_ring_ends_the_stream(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	memset(f.ring.shared, 0xff, 64); /* the writer's position */
	uint64_t wake = 1;
	assert_int_equal(write(f.ring.data_fd, &wake, sizeof(wake)), sizeof(wake));
	expect_broken_stream(&f);
	close_fixture(&f);
}

/* The file takes a part of a batch and then nothing: nothing is lost, nothing is doubled, no line
 * is torn. */
static void test_full_disk_loses_nothing(void **state)
{
	struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
	struct ipc_message message;
	struct message_text m;
	struct fixture f;
	struct stat st;

	(void)state;
	open_fixture(&f, 10000);
	for (int i = 0; i < 20; i++)
		write_event(&f.ring, sample_http());
	expect_message(f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	assert_int_equal(message_text_decode(&message.body, &m), 0);
	assert_non_null(memmem(m.text.p, m.text.n, f.path, strlen(f.path)));
	assert_int_equal(fstat(f.log, &st), 0);
	assert_int_equal(st.st_size, 10000);
	/* The worker goes on until its ring is full, and then has to wait. */
	for (int i = 0; i < 500; i++)
		write_event(&f.ring, sample_denied());
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_STOP));
	send_end(&f, SANDBOX, 8);
	assert_int_equal(prlimit(f.pid, RLIMIT_FSIZE, &more, NULL), 0);
	expect_message(f.control, MESSAGE_RECORDER_FLOWING, 0, &message);
	assert_true(reader_done(&message.body));
	assert_int_equal(expect_summary(&f, 8).lines, 521);
	assert_int_equal(verify(f.path), 521);
	stop(&f);
	close_fixture(&f);
}

static void test_ring_refuses_when_stalled_for_long(void **state)
{
	struct ipc_message message;
	struct fixture f;
	uint8_t record[EVENT_BYTES_MAX];
	struct event event = sample_http();
	size_t n = event_encode(&event, record, sizeof(record));
	int rc = 0, i;

	(void)state;
	open_fixture(&f, 1);
	write_event(&f.ring, event);
	expect_message(f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	for (i = 0; i < 100000 && rc == 0; i++)
		rc = ring_write(&f.ring, record, n);
	assert_int_equal(rc, -EAGAIN);
	assert_true(i > 500);
	close_fixture(&f);
}

static void test_two_recorders_share_one_chain(void **state)
{
	struct fixture f, g = {0};

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	start(&g, f.path, RLIM_INFINITY);
	add_sandbox(&g, SANDBOX, &g.ring, &g.packets);
	for (int i = 0; i < 2000; i++) {
		write_event(&f.ring, sample_http());
		write_event(&g.ring, sample_denied());
	}
	send_end(&f, SANDBOX, 8);
	send_end(&g, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 2000);
	assert_int_equal(expect_summary(&g, 8).lines, 2000);
	assert_int_equal(verify(f.path), 4000);
	stop(&f);
	stop(&g);
	close_fixture(&g);
	close_fixture(&f);
}

static void test_foreign_lock_is_waited_for_and_told(void **state)
{
	struct ipc_message message;
	struct fixture f;
	int other;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	other = open(f.path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_EX), 0);
	write_event(&f.ring, sample_http());
	expect_message(f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	assert_int_equal(flock(other, LOCK_UN), 0);
	expect_message(f.control, MESSAGE_RECORDER_FLOWING, 0, &message);
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 1);
	assert_int_equal(verify(f.path), 1);
	close(other);
	close_fixture(&f);
}

static void test_supervisor_that_breaks_protocol_is_left(void **state)
{
	struct fixture f;
	int status;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	write_event(&f.ring, sample_http());
	send_event(&f, 4711, sample_http()); /* no such sandbox */
	assert_int_equal(waitpid(f.pid, &status, 0), f.pid);
	f.pid = 0;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	assert_int_equal(verify(f.path), 1);
	close_fixture(&f);
}

static void test_lost_supervisor_ends_after_the_last_line(void **state)
{
	struct fixture f;
	int status;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	for (int i = 0; i < 50; i++)
		write_event(&f.ring, sample_http());
	shutdown(f.control, SHUT_RDWR);
	assert_int_equal(waitpid(f.pid, &status, 0), f.pid);
	f.pid = 0;
	assert_int_equal(verify(f.path), 50);
	close_fixture(&f);
}

static size_t put_attribute(uint8_t *out, uint16_t type, const void *value, size_t n)
{
	const struct nlattr head = {.nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = type};

	memcpy(out, &head, sizeof(head));
	memcpy(out + NLA_HDRLEN, value, n);
	return NLA_ALIGN(NLA_HDRLEN + n);
}

/* A copy as the kernel makes it: an nfnetlink_log message with nothing but its prefix and an IPv4
 * header. */
static void send_packet(int fd)
{
	_Alignas(struct nlmsghdr) uint8_t datagram[256] = {0};
	struct nlmsghdr *head = (struct nlmsghdr *)datagram;
	static const char prefix[] = "vethguard:other";
	static const uint8_t ip[28] = {0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 2, 8, 8,
	        8, 8, 4, 0, 1, 187, 0, 8, 0, 0};
	size_t n = NLMSG_HDRLEN;

	head->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
	((struct nfgenmsg *)(datagram + n))->nfgen_family = AF_INET;
	n += NLMSG_ALIGN(sizeof(struct nfgenmsg));
	n += put_attribute(datagram + n, NFULA_PREFIX, prefix, sizeof(prefix));
	n += put_attribute(datagram + n, NFULA_PAYLOAD, ip, sizeof(ip));
	head->nlmsg_len = (uint32_t)n;
	assert_int_equal(send(fd, datagram, n, 0), (ssize_t)n);
}

static void send_packets(struct fixture *f, int count)
{
	for (int i = 0; i < count; i++)
		send_packet(f->packets);
}

static void test_what_the_fence_counted_more_is_told(void **state)
{
	struct message_summary summary;
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	send_packets(&f, 3);
	send_end_counted(&f, SANDBOX, 8, 1234567);
	summary = expect_summary(&f, 8);
	assert_int_equal(summary.findings, 0);
	assert_int_equal(summary.dropped, 1234567);
	assert_true(file_has(f.path, "1234564 packets: various kinds of packets"));
	assert_int_equal(verify(f.path), 2);
	close_fixture(&f);
}

static void expect_head(struct fixture *f, uint64_t id, struct slice expected)
{
	uint8_t question[64];
	struct ipc_message message;
	struct message_text m;

	assert_int_equal(
	        ipc_send_blocking(f->control, question,
	                message_empty(question, sizeof(question), MESSAGE_RECORDER_HEAD_GET, id),
	                NULL, 0),
	        0);
	expect_message(f->control, MESSAGE_RECORDER_HEAD, id, &message);
	assert_int_equal(message_text_decode(&message.body, &m), 0);
	assert_true(slice_equals(m.text, expected));
}

/* The last line is known without the file: one that somebody has cut does not answer for itself. */
static void test_the_last_line_is_remembered(void **state)
{
	struct message_summary summary;
	struct fixture f;
	struct seal seal;
	char *text, *last;
	size_t n;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	expect_head(&f, 5, SLICE(""));
	send_packets(&f, 3);
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_STOP));
	send_end(&f, SANDBOX, 8);
	summary = expect_summary(&f, 8);
	assert_int_equal(summary.dropped, 3);
	text = read_file(f.path, &n);
	text[n - 1] = '\0';
	last = strrchr(text, '\n');
	assert_non_null(last);
	assert_int_equal(seal_parse(slice_from_string(last + 1), &seal), 0);
	expect_head(&f, 9, slice_from_string(seal.own.hash));
	assert_int_equal(truncate(f.path, last + 1 - text), 0);
	expect_head(&f, 10, slice_from_string(seal.own.hash));
	free(text);
	close_fixture(&f);
}

/* The last line of a sandbox says that it has ended, whatever was still to be counted. */
static void test_the_stop_is_the_last_line(void **state)
{
	struct fixture f;
	char *text, *last;
	size_t n;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	send_packets(&f, 3);
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_START));
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_STOP));
	while (!file_has(f.path, " started"))
		poll(NULL, 0, 1);
	poll(NULL, 0, 3 * RECORDER_BATCH_DELAY_MS);
	assert_false(file_has(f.path, " stopped"));
	send_packets(&f, 2);
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).dropped, 5);
	text = read_file(f.path, &n);
	text[n - 1] = '\0';
	last = strrchr(text, '\n');
	assert_non_null(last);
	assert_non_null(strstr(last, " stopped"));
	free(text);
	assert_true(verify(f.path) >= 3);
	close_fixture(&f);
}

static void send_count(struct fixture *f, uint64_t sandbox, uint64_t dropped)
{
	struct message_sandbox m = {sandbox, dropped};
	size_t n = message_sandbox_encode(buffer, sizeof(buffer), MESSAGE_RECORDER_COUNT, 3, &m);

	assert_int_equal(ipc_send_blocking(f->control, buffer, n, NULL, 0), 0);
}

static void expect_question(struct fixture *f)
{
	struct ipc_message question;
	struct message_sandbox m;

	expect_message(f->control, MESSAGE_RECORDER_COUNT_GET, 0, &question);
	assert_int_equal(message_sandbox_decode(&question.body, &m), 0);
	assert_int_equal(m.sandbox_id, SANDBOX);
	assert_int_equal(m.dropped, 0);
}

static void test_copies_ask_for_the_count(void **state)
{
	struct message_summary summary;
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	send_packets(&f, 5);
	expect_question(&f);
	send_count(&f, 4711, 5); /* of a sandbox that is not there any more */
	send_count(&f, SANDBOX, 1000);
	send_count(&f, SANDBOX, 1000); /* and no more of it */
	send_count(&f, SANDBOX, 7);    /* an old one */
	send_end_counted(&f, SANDBOX, 8, 1001);
	summary = expect_summary(&f, 8);
	assert_int_equal(summary.dropped, 1001);
	assert_int_equal(summary.findings, 0);
	verify(f.path);
	close_fixture(&f);
}

/* Packets counted before this recorder belong to the earlier one. */
static void test_counts_of_before_are_not_told_again(void **state)
{
	enum { COPIES = 20 };
	static const struct {
		uint64_t before, want;
	} cases[] = {{500, COPIES + 300}, {0, COPIES + 800}, {MESSAGE_DROPPED_UNKNOWN, COPIES}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		struct ring ring;
		int packets;

		open_fixture(&f, RLIM_INFINITY);
		f.dropped_before = cases[i].before;
		add_sandbox(&f, SANDBOX + 1, &ring, &packets);
		for (int n = 0; n < COPIES; n++)
			send_packet(packets);
		send_end_counted(&f, SANDBOX + 1, 8, 800 + COPIES);
		for (;;) {
			struct ipc_message message;
			struct message_summary m;

			assert_int_equal(
			        ipc_receive_blocking(f.control, PATIENCE_MS, buffer, &message), 0);
			if (message.head.type == MESSAGE_RECORDER_COUNT_GET)
				continue;
			assert_int_equal(message.head.type, MESSAGE_RECORDER_SUMMARY);
			assert_int_equal(message_summary_decode(&message.body, &m), 0);
			assert_int_equal(m.dropped, cases[i].want);
			break;
		}
		ring_close(&ring);
		close(packets);
		close_fixture(&f);
	}
}

static void test_nonsense_on_the_packet_socket_is_a_finding(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	assert_int_equal(send(f.packets, "nonsense", 8, 0), 8);
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).findings, 1);
	assert_true(file_has(f.path, "packet-copies-lost"));
	close_fixture(&f);
}

/* Its NFLOG socket cannot be waited for, as a file cannot. What came with it about its ring is
 * passed over. */
static void test_a_sandbox_that_cannot_be_read_is_refused(void **state)
{
	struct fixture f;
	struct ipc_message message;
	int fds[4];

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	assert_int_equal(ring_create(fds), 0);
	fds[3] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fds[3] >= 0);
	say_sandbox(&f, SANDBOX + 1, fds);
	close(fds[3]);
	expect_message(f.control, MESSAGE_RECORDER_REFUSED, SANDBOX + 1, &message);
	write_event(&f.ring, sample_http()); /* the other one lives on */
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).allowed, 1);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_events_become_lines),
	        cmocka_unit_test(test_lines_appear_by_themselves),
	        cmocka_unit_test(test_more_than_a_ring),
	        cmocka_unit_test(test_dead_writer_is_drained_in_order),
	        cmocka_unit_test(test_undecodable_record_ends_its_stream),
	        cmocka_unit_test(test_forged_kinds_end_the_stream),
	        cmocka_unit_test(test_impossible_ring_ends_the_stream),
	        cmocka_unit_test(test_full_disk_loses_nothing),
	        cmocka_unit_test(test_ring_refuses_when_stalled_for_long),
	        cmocka_unit_test(test_two_recorders_share_one_chain),
	        cmocka_unit_test(test_foreign_lock_is_waited_for_and_told),
	        cmocka_unit_test(test_supervisor_that_breaks_protocol_is_left),
	        cmocka_unit_test(test_lost_supervisor_ends_after_the_last_line),
	        cmocka_unit_test(test_what_the_fence_counted_more_is_told),
	        cmocka_unit_test(test_the_stop_is_the_last_line),
	        cmocka_unit_test(test_the_last_line_is_remembered),
	        cmocka_unit_test(test_copies_ask_for_the_count),
	        cmocka_unit_test(test_counts_of_before_are_not_told_again),
	        cmocka_unit_test(test_nonsense_on_the_packet_socket_is_a_finding),
	        cmocka_unit_test(test_a_sandbox_that_cannot_be_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
