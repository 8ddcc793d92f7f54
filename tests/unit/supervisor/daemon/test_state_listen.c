/* SPDX-License-Identifier: Apache-2.0 */
/* State files of sandboxes whose only way out is a socket. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "state_fixture.h"

static struct attach_record sample(void)
{
	return (struct attach_record){.name = "one",
	        .id = 7,
	        .kind = ATTACH_LISTEN,
	        .listen = {.path = "/run/a b/\xc3\xa9.sock",
	                .mode = 0660,
	                .uid = 4294967294u,
	                .gid = 1777,
	                .device = 0x1234567890,
	                .inode = UINT64_MAX - 1,
	                .born_ns = UINT64_MAX - 2},
	        .policy = (char *)(uintptr_t) "/etc/p.yaml",
	        .created_ms = 1,
	        .generation = 1};
}

static void save_sample(void)
{
	struct attach_record record = sample();
	struct gate gate;

	gate_init(&gate);
	gate.kind = GATE_SOCKET;
	gate.bounds.connections_per_s = 9;
	assert_int_equal(state_save(dir, &record, &gate), 0);
}

static void what_is_written_is_read(void **state)
{
	const struct attach_record was = sample();
	char error[STATE_ERROR_MAX];
	struct attach_record is;
	struct gate gate;

	(void)state;
	save_sample();
	assert_int_equal(load(&is, &gate, error), 0);
	assert_int_equal(is.kind, ATTACH_LISTEN);
	assert_string_equal(is.listen.path, was.listen.path);
	assert_true(is.listen.mode == was.listen.mode && is.listen.uid == was.listen.uid);
	assert_true(is.listen.gid == was.listen.gid && is.listen.inode == was.listen.inode);
	assert_true(is.listen.device == was.listen.device);
	assert_true(is.listen.born_ns == was.listen.born_ns);
	assert_int_equal(gate.kind, GATE_SOCKET);
	assert_int_equal(gate.tcp_port, 0);
	assert_int_equal(gate.gate4.family, 0);
	assert_int_equal(gate.bounds.connections_per_s, 9);
	attach_record_fini(&is);
}

static void values_out_of_bounds_are_refused(void **state)
{
	(void)state;
	refuses("\"listen\": {", "\"listen\": 1, \"more\": {", "damaged");
	refuses("\"listen\": {", "\"listenn\": {", "damaged");
	refuses("\"kind\": \"listen\"", "\"kind\": \"netns\"", "listen");
	refuses("\"kind\": \"listen\"", "\"kind\": \"pid\"", "listen");
	refuses("/run/a b/", "run/a b/", "listen");
	refuses("/run/a b/", "/run/\\u0001b/", "listen");
	refuses("/run/a b/", "/run/../a b/.././x/\\u007f/", "listen");
	refuses(".sock\"", "/\"", "listen");
	refuses("/run/a b/",
	        "/rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
	        "rrrrrrrrrrrrrrrrrrrrrrrrrrr/",
	        "listen");
	refuses("\"mode\": 432", "\"mode\": 512", "listen");
	refuses("\"mode\": 432", "\"mode\": -1", "listen");
	refuses("\"mode\": 432", "\"mode\": \"660\"", "listen");
	refuses("4294967294", "4294967295", "listen");
	refuses("4294967294", "-1", "listen");
	refuses("\"gid\": 1777", "\"gid\": 4294967295", "listen");
	refuses("fffffffffffffffd", "fffffffffffffffD", "listen");
	refuses("fffffffffffffffe", "fffffffffffffff", "listen");
	refuses("0000001234567890", "000000123456789g", "listen");
	refuses("\"inode\"", "\"inodes\"", "listen");
	refuses("\"tcp_port\": 0", "\"tcp_port\": -1", "gate");
	refuses("\"tcp_port\": 0", "\"tcp_port\": 65536", "gate");
}

static void what_it_is_in_words(void **state)
{
	struct attach_record record = sample();
	char text[128];

	(void)state;
	attach_record_describe(&record, text, sizeof(text));
	assert_string_equal(text, "socket /run/a b/\xc3\xa9.sock, policy /etc/p.yaml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(what_is_written_is_read),
	        TEST(values_out_of_bounds_are_refused), cmocka_unit_test(what_it_is_in_words)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
