/* SPDX-License-Identifier: Apache-2.0 */
/* A gate with a veth pair: made, damaged and mended, pinned and adopted, watched. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/un.h>
#include <sys/wait.h>

#include "gate_world.h"
#include "supervisor/gate/unlink.h"

static int sandbox;

static void open_gate(struct gate *gate)
{
	assign(gate);
	sandbox = netns_new();
	assert_true(sandbox >= 0);
	assert_int_equal(gate_open(gate, host, sandbox), 0);
	assert_int_equal(gate_connect(gate), 0);
}

static void close_all(struct gate *gate)
{
	gate_close(gate);
	close(sandbox);
}

static void connections_to_anywhere_reach_the_listener(void **state)
{
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	assert_int_equal(dial(sandbox, "2001:db8::1", 443), 0);
	gate_close_handed_out(&gate);
	assert_int_not_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&gate);
}

static void a_gate_from_the_store_is_as_good(void **state)
{
	struct gate like, gate;

	(void)state;
	assign(&like);
	assert_int_equal(gate_host_prepare(host, &like, 1), 0);
	open_gate(&gate);
	assert_int_equal(gate_repair(&gate), 0);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&gate);
	/* The store is empty now, and another port never fits. */
	open_gate(&gate);
	assert_int_equal(gate_repair(&gate), 0);
	assert_int_equal(dial(sandbox, "2001:db8::1", 80), 0);
	close_all(&gate);
}

/* A fence in store that was made for others: every address of it is another one. */
static void a_gate_from_the_store_gets_its_own_addresses(void **state)
{
	static const struct ip_prefix pool4 = {{4, {100, 64, 9}}, 30},
	                              pool6 = {{6, {0xfd, 9}}, 126};
	struct gate like, gate;

	(void)state;
	assign(&like);
	gate_assign(&like, &pool4, &pool6);
	like.bounds.connections_per_s = 1;
	assert_int_equal(gate_host_prepare(host, &like, 1), 0);
	open_gate(&gate);
	assert_int_equal(gate.prepared, FENCE_OTHER);
	gate.generation = 0; /* the rules are to be compared, not only their number */
	assert_int_equal(gate_repair(&gate), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	assert_int_equal(dial(sandbox, "2001:db8::1", 80), 0);
	close_all(&gate);
	run_loop(200);
	open_gate(&gate);
	assert_int_equal(
	        gate.prepared, FENCE_FITS); /* what is made from then on is of those that came */
	gate.generation = 0;
	assert_int_equal(gate_repair(&gate), 0);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&gate);
}

static void nothing_leads_to_a_gate_before_it_is_connected(void **state)
{
	struct gate gate;

	(void)state;
	assign(&gate);
	sandbox = netns_new();
	assert_true(sandbox >= 0);
	assert_int_equal(gate_open(&gate, host, sandbox), 0);
	assert_true(gate.listener_count > 0);
	assert_int_not_equal(shell(sandbox, "ip link show eth0 2>/dev/null"), 0);
	assert_int_not_equal(dial(sandbox, "8.8.8.8", 80), 0);
	assert_int_equal(gate_connect(&gate), 0);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&gate);
}

static void the_store_is_filled_again(void **state)
{
	struct gate like, gate;

	(void)state;
	assign(&like);
	assert_int_equal(gate_host_prepare(host, &like, 2), 0);
	run_loop(200);
	open_gate(&gate);
	assert_int_equal(gate_repair(&gate), 0);
	close_all(&gate);
}

static const struct damage {
	const char *command, *told;
} damages[] = {
        {"nft flush ruleset", "its rules"},
        {"nft add rule inet vethguard link-vg0 accept", "its rules"},
        {"nft add table ip other", "its rules"},
        {"ip link set vg0 address 02:00:00:00:00:99", "MAC"},
        {"ip link set vg0 down", "down"},
        {"ip -4 addr flush dev vg0", "addresses"},
        {"ip -4 rule del pref 1", "routes"},
        {"ip -6 route flush table 100", "routes"},
        {"ip -4 rule flush", "routes"},
        {"ip -6 rule flush", "routes"},
        {"ip -4 route flush table main", "routes"},
        {"ip -6 route flush table main", "routes"},
        {"echo 1 >/proc/sys/net/ipv4/ip_forward", "sysctls"},
        {"echo 1 >/proc/sys/net/ipv4/conf/vg0/forwarding", "sysctls"},
        {"echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet", "sysctls"},
};

static void damage_is_mended_and_named(void **state)
{
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_int_equal(gate_repair(&gate), 0);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		int result;

		if (shell(gate.netns, "%s", damages[i].command) != 0) {
			print_message("skipped: %s\n", damages[i].command);
			continue;
		}
		result = gate_repair(&gate);
		if (result < 0 || !strstr(gate.why, damages[i].told))
			fail_msg("%s: %d, %s", damages[i].command, result, gate.why);
		/* A foreign table beside ours stays what it is: each look says so. */
		shell(gate.netns, "nft delete table ip other 2>/dev/null");
		assert_int_equal(gate_repair(&gate), 0);
		assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	}
	close_all(&gate);
}

static void a_link_that_is_gone_cannot_be_mended(void **state)
{
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_int_equal(shell(sandbox, "ip link del eth0"), 0);
	assert_int_equal(gate_repair(&gate), -ENOLINK);
	assert_non_null(strstr(gate.why, "gone"));
	close_all(&gate);
}

#define ENDS 48
#define ENDS_STEP_US 40

/* In the sandbox: its end of the link goes, so long after it was said. */
static int delete_link(void *context)
{
	const int *order = context;
	struct netlink *nl;
	int after_us;

	if (netlink_open(&nl) < 0 || read(*order, &after_us, sizeof(after_us)) != sizeof(after_us))
		return -1;
	usleep((useconds_t)after_us);
	return netlink_link_delete(nl, "eth0");
}

static void a_link_that_goes_while_it_is_looked_at_is_gone(void **state)
{
	(void)state;
	for (int i = 0; i < ENDS; i++) {
		int order[2], after_us = i * ENDS_STEP_US, status, result;
		struct gate gate;
		pid_t pid;

		open_gate(&gate);
		assert_int_equal(pipe(order), 0);
		pid = fork();
		if (pid == 0)
			_exit(netns_run(sandbox, delete_link, &order[0]) == 0 ? 0 : 1);
		assert_true(pid > 0);
		gate_repair(&gate); /* the child gets ready meanwhile */
		assert_int_equal(write(order[1], &after_us, sizeof(after_us)), sizeof(after_us));
		result = gate_repair(&gate);
		if (result < 0 && result != -ENOLINK)
			fail_msg("after %d us: %d, %s", after_us, result, gate.why);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(gate_repair(&gate), -ENOLINK);
		close(order[0]);
		close(order[1]);
		close_all(&gate);
	}
}

static void copy_shape(const struct gate *from, struct gate *to)
{
	*to = *from;
	to->netns = to->sandbox_netns = to->packets = -1;
	to->listener_count = 0;
	to->watch = NULL;
	to->host = NULL;
}

static void a_pinned_gate_is_adopted(void **state)
{
	const char *pin = pin_path("adopted");
	struct gate gate, second;

	(void)state;
	open_gate(&gate);
	copy_shape(&gate, &second);
	assert_int_equal(gate_pin(&gate, pin), 0);
	assert_int_equal(gate_pin(&gate, pin), -EEXIST);
	gate_close(&gate);
	/* No worker is there: refused, not passed and not forgotten. */
	assert_int_not_equal(dial(sandbox, "8.8.8.8", 80), 0);

	assert_int_equal(gate_adopt(&second, host, pin), 0);
	assert_int_equal(gate_listen(&second), 0);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	gate_close(&second);

	assert_int_equal(shell(-1, "nsenter --net=%s nft flush ruleset", pin), 0);
	assert_int_equal(gate_adopt(&second, host, pin), 1);
	assert_string_equal(second.why, "its rules");
	assert_int_equal(gate_listen(&second), 0);
	assert_int_equal(dial(sandbox, "2001:db8::1", 80), 0);
	assert_int_equal(gate_remove(&second, host, pin, true), 0);
	assert_int_equal(access(pin, F_OK), -1);
	assert_int_not_equal(shell(sandbox, "ip link show eth0 2>/dev/null"), 0);
	close(sandbox);
}

static void on_no_change(struct gate *gate, int result)
{
	(void)gate;
	fail_msg("told of %d", result);
}

static void on_unlinked(void *context)
{
	if (--*(int *)context == 0)
		loop_stop(loop);
}

/* More than are taken away at a time, their gates closed or moved meanwhile. */
static void links_are_taken_away_while_the_loop_goes_on(void **state)
{
	enum { COUNT = GATE_UNLINKS_MAX + 3 };
	struct gate gates[COUNT], moved;
	struct gate_unlinking *u[COUNT];
	int sandboxes[COUNT], left = COUNT;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		open_gate(&gates[i]);
		sandboxes[i] = sandbox;
		assert_int_equal(gate_watch(&gates[i], host, on_no_change), 0);
	}
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(gate_unlink(&gates[i], loop, on_unlinked, &left, &u[i]), 0);
	gate_close(&gates[0]);
	gate_move(&moved, &gates[1]);
	run_loop(10 * WAIT_MS);
	assert_int_equal(left, 0);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_not_equal(shell(sandboxes[i], "ip link show eth0 >/dev/null 2>&1"), 0);
	assert_int_equal(gate_remove(&moved, host, NULL, true), 0);
	for (size_t i = 2; i < COUNT; i++)
		assert_int_equal(gate_remove(&gates[i], host, NULL, true), 0);
	for (size_t i = 0; i < COUNT; i++)
		close(sandboxes[i]);
}

/* Those that are under way are waited for, those that wait are not begun; nobody is told. */
static void taking_links_away_can_be_ended(void **state)
{
	enum { COUNT = GATE_UNLINKS_MAX + 2 };
	struct gate gates[COUNT];
	struct gate_unlinking *u[COUNT];
	int sandboxes[COUNT], left = COUNT;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		open_gate(&gates[i]);
		sandboxes[i] = sandbox;
	}
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(gate_unlink(&gates[i], loop, on_unlinked, &left, &u[i]), 0);
	for (size_t i = COUNT; i-- > 0;)
		gate_unlink_end(u[i]);
	gate_unlink_end(NULL);
	assert_int_equal(left, COUNT);
	assert_int_not_equal(shell(sandboxes[0], "ip link show eth0 >/dev/null 2>&1"), 0);
	assert_int_equal(shell(sandboxes[COUNT - 1], "ip link show eth0 >/dev/null"), 0);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(gate_remove(&gates[i], host, NULL, true), 0);
		assert_int_not_equal(shell(sandboxes[i], "ip link show eth0 >/dev/null 2>&1"), 0);
		close(sandboxes[i]);
	}
}

static void a_pin_without_its_gate_is_said(void **state)
{
	const char *pin = pin_path("gone");
	struct gate gate, second;

	(void)state;
	open_gate(&gate);
	copy_shape(&gate, &second);
	assert_int_equal(gate_adopt(&second, host, pin), -ENOENT);
	assert_non_null(strstr(second.why, pin));
	assert_int_equal(gate_pin(&gate, pin), 0);
	gate_close(&gate);

	assert_int_equal(shell(sandbox, "ip link del eth0"), 0);
	assert_int_equal(gate_adopt(&second, host, pin), -ENOLINK);
	assert_non_null(strstr(second.why, "gone"));
	assert_int_equal(umount2(pin, MNT_DETACH), 0);
	assert_int_equal(gate_adopt(&second, host, pin), -EINVAL);
	assert_non_null(strstr(second.why, "unmounted"));
	assert_int_equal(gate_remove(&second, host, pin, true), 0);
	assert_int_equal(access(pin, F_OK), -1);
	close(sandbox);
}

static void other_bounds_are_in_force(void **state)
{
	const struct fence_bounds tight = {1, 1, 1, 1}, wide = {100000, 100000, 100000, 100000};
	struct gate gate;
	int refused = 0;

	(void)state;
	open_gate(&gate);
	assert_int_equal(gate_set_traffic(&gate, NULL, 0, &wide), 0);
	assert_int_equal(gate_repair(&gate), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	assert_int_equal(gate_dropped(&gate).connections, 0);
	assert_int_equal(gate_set_traffic(&gate, NULL, 0, &tight), 0);
	assert_int_equal(gate_repair(&gate), 0);
	/* Each that is refused takes a second and more to be tried again. */
	for (int i = 0; i < 20 && refused == 0; i++) {
		dial(sandbox, "8.8.8.8", 80);
		refused = (int)gate_dropped(&gate).connections;
	}
	assert_true(refused > 0);
	close_all(&gate);
}

static void other_udp_ports_are_in_force(void **state)
{
	const uint16_t ports[] = {123, 4433};
	const struct fence_bounds none = {0};
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_int_equal(gate_set_traffic(&gate, ports, 2, &none), 0);
	assert_int_equal(gate_repair(&gate), 0);
	assert_int_equal(gate_listen(&gate), 0);
	assert_int_equal(gate.listener_count, 10);
	assert_int_equal(gate_set_traffic(&gate, NULL, 0, &none), 0);
	assert_int_equal(gate_repair(&gate), 0);
	close_all(&gate);
}

/* A worker that retires has connections in its queue; they are the next one's. */
static void what_waits_in_a_queue_moves_to_the_next_listener(void **state)
{
	struct gate gate, second;
	int taken = 0;

	(void)state;
	open_gate(&gate);
	copy_shape(&gate, &second);
	second.netns = gate.netns;
	assert_int_equal(gate_listen(&second), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	gate_close_handed_out(&gate);
	for (size_t i = 0; i < second.listener_count; i++)
		while (second.listeners[i].kind == MESSAGE_LISTEN_TCP) {
			int fd = accept(second.listeners[i].fd, NULL, NULL);

			if (fd < 0)
				break;
			close(fd);
			taken++;
		}
	assert_int_equal(taken, 8);
	gate_close_handed_out(&second);
	close_all(&gate);
}

static int told, told_result;

static void on_change(struct gate *gate, int result)
{
	(void)gate;
	told++;
	told_result = result;
	loop_stop(loop);
}

static void a_foreign_change_is_noticed_and_mended(void **state)
{
	const struct fence_bounds bounds = {1000, 1000, 1000, 1000};
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_int_equal(gate_watch(&gate, host, on_change), 0);
	told = 0;
	run_loop(300);
	assert_int_equal(told, 0);
	assert_int_equal(shell(gate.netns, "nft flush ruleset"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, 1);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	/* The supervisor's own changes are not reported. */
	assert_int_equal(gate_set_traffic(&gate, NULL, 0, &bounds), 0);
	run_loop(300);
	assert_int_equal(told, 1);
	assert_int_equal(shell(gate.netns, "ip link set vg0 down"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 2);
	assert_non_null(strstr(gate.why, "down"));
	/* The kernel tells of some sysctls. */
	assert_int_equal(shell(gate.netns, "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 3);
	assert_non_null(strstr(gate.why, "sysctls"));
	assert_int_equal(shell(sandbox, "ip link del eth0"), 0);
	run_loop(2 * WAIT_MS);
	assert_int_equal(told, 4);
	assert_int_equal(told_result, -ENOLINK);
	close_all(&gate);
}

/* As a prepared gate is until it is claimed: connected, and everything is refused. */
static void a_gate_that_sleeps_refuses_and_wakes(void **state)
{
	struct gate gate;

	(void)state;
	open_gate(&gate);
	gate_sleep(&gate);
	assert_int_equal(gate.packets, -1);
	assert_int_equal(gate.listener_count, 0);
	assert_int_not_equal(dial(sandbox, "8.8.8.8", 80), 0);
	assert_int_not_equal(dial(sandbox, "2001:db8::1", 443), 0);
	for (int i = 0; i < 2; i++) { /* also twice */
		assert_int_equal(gate_wake(&gate), 0);
		assert_true(gate.packets >= 0);
		assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
		assert_int_equal(dial(sandbox, "2001:db8::1", 443), 0);
	}
	gate_sleep(&gate);
	assert_int_not_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&gate);
	assert_int_not_equal(gate_wake(&gate), 0); /* its namespace is gone */
	assert_int_equal(gate.listener_count, 0);
}

/* The same with sockets that are ready. */
static void a_gate_that_dozes_refuses_and_wakes(void **state)
{
	struct gate gate;
	size_t count;

	(void)state;
	open_gate(&gate);
	count = gate.listener_count;
	for (int i = 0; i < 2; i++) { /* also twice */
		gate_doze(&gate);
		assert_true(gate.dozes);
		assert_int_equal(gate.listener_count, count);
		assert_true(gate.packets >= 0);
		assert_int_not_equal(dial(sandbox, "8.8.8.8", 80), 0);
		assert_int_not_equal(dial(sandbox, "2001:db8::1", 443), 0);
		assert_int_equal(gate_wake(&gate), 0);
		assert_false(gate.dozes);
		assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
		assert_int_equal(dial(sandbox, "2001:db8::1", 443), 0);
		assert_int_equal(gate.listener_count, count);
	}
	gate_doze(&gate);
	gate_close_handed_out(&gate); /* other ports, for example */
	assert_false(gate.dozes);
	assert_int_equal(gate_wake(&gate), 0);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	gate_doze(&gate);
	assert_int_equal(fcntl(gate.listeners[2].fd, F_GETFD), FD_CLOEXEC);
	close(gate.listeners[2].fd); /* one that does not work */
	gate.listeners[2].fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_not_equal(gate_wake(&gate), 0);
	assert_string_equal(gate.step, "listening for names");
	assert_int_equal(gate.listener_count, 0);
	assert_int_equal(gate.packets, -1);
	assert_int_not_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&gate);
	gate_doze(&gate); /* its namespace is gone */
	assert_false(gate.dozes);
	assert_int_equal(gate.listener_count, 0);
}

static void a_gate_is_watched_where_it_has_moved_to(void **state)
{
	struct gate gate, other;

	(void)state;
	open_gate(&gate);
	assert_int_equal(gate_watch(&gate, host, on_no_change), 0);
	gate_move_watched(&other, &gate, on_change);
	assert_null(gate.watch);
	assert_int_equal(gate.netns, -1);
	gate_close(&gate);
	told = 0;
	assert_int_equal(shell(other.netns, "nft flush ruleset"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, 1);
	close_all(&other);
	/* A gate that nobody watches. */
	open_gate(&gate);
	gate_move_watched(&other, &gate, on_change);
	assert_null(other.watch);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&other);
}

static void links_that_are_alike(void **state)
{
	struct gate gate;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assign(&gate);
		sandbox = netns_new();
		assert_true(sandbox >= 0);
		gate_same_macs(&gate);
		assert_int_equal(gate_open(&gate, host, sandbox), 0);
		assert_int_equal(gate_connect(&gate), 0);
		assert_true(gate_has_same_macs(&gate));
		assert_int_equal(
		        shell(sandbox, "ip link show eth0 | grep -q 02:76:67:00:00:02"), 0);
		assert_int_equal(
		        shell(gate.netns, "ip link show vg0 | grep -q 02:76:67:00:00:01"), 0);
		assert_int_equal(gate_repair(&gate), 0);
		assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
		close_all(&gate);
	}
	open_gate(&gate);
	assert_false(gate_has_same_macs(&gate));
	close_all(&gate);
}

static void close_inside(struct gate *gate, int result)
{
	told_result = result;
	gate_close(gate);
	loop_stop(loop);
}

static void whoever_is_told_may_close_the_gate(void **state)
{
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_int_equal(gate_watch(&gate, host, close_inside), 0);
	assert_int_equal(shell(gate.netns, "nft flush ruleset"), 0);
	told_result = 0;
	run_loop(WAIT_MS);
	assert_int_equal(told_result, 1);
	assert_null(gate.watch);
	close(sandbox);
}

static size_t sockets(void)
{
	struct stat st;
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
	return count;
}

static void one_socket_hears_of_all_gates(void **state)
{
	struct gate first, second;
	int other;
	size_t before;

	assert_int_equal(gate_host_listen_for_all(host), 0);
	open_gate(&first);
	before = sockets();
	assert_int_equal(gate_watch(&first, host, on_change), 0);
	assert_int_equal(sockets(), before);
	other = sandbox;
	open_gate(&second);
	assert_int_equal(gate_watch(&second, host, close_inside), 0);
	told = told_result = 0;
	run_loop(300);
	assert_int_equal(told, 0);
	assert_int_equal(told_result, 0);
	assert_int_equal(shell(first.netns, "nft flush ruleset"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, 1);
	assert_int_equal(dial(other, "8.8.8.8", 80), 0);
	told_result = 0;
	assert_int_equal(shell(second.netns, "ip link set vg0 down"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told_result, 1);
	assert_null(second.watch); /* close_inside() */
	assert_int_equal(told, 1);
	close(other);
	close_all(&first);
	a_foreign_change_is_noticed_and_mended(state); /* under a number that was free again */
}

static void routing_is_heard_again_when_another_gate_is_connected(void **state)
{
	struct gate first, second;
	int other;

	(void)state;
	assert_int_equal(gate_host_listen_for_all(host), 0);
	open_gate(&first);
	assert_int_equal(gate_watch(&first, host, on_change), 0);
	other = sandbox;
	open_gate(&second);
	run_loop(300);
	told = 0;
	assert_int_equal(shell(first.netns, "ip addr flush dev vg0"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, 1);
	close(other);
	close_all(&first);
	gate_close(&second);
}

/* More than the buffer holds: what was lost is looked for. */
static void lost_notifications_are_made_up_for(void **state)
{
	struct gate gate;
	char line[] = "file=$(mktemp /tmp/vethguard-flush-XXXXXX); "
	              "for i in $(seq 2000); do echo flush ruleset; done > $file; "
	              "for i in $(seq 12); do nft -f $file; done; "
	              "rm $file";
	int small = 2304;

	(void)state;
	assert_int_equal(gate_host_listen_for_all(host), 0);
	for (int fd = 0; fd < 256; fd++)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	open_gate(&gate);
	assert_int_equal(gate_watch(&gate, host, on_change), 0);
	told = 0;
	run_loop(300);
	assert_int_equal(shell(gate.netns, "%s", line), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, 1);
	assert_int_equal(dial(sandbox, "8.8.8.8", 80), 0);
	close_all(&gate);
}

/* Its one queue is all workers', and is there without any. */
static void a_socket_is_a_gate(void **state)
{
	const struct sockaddr_un any = {.sun_family = AF_UNIX};
	struct fence_bounds bounds = {.connections_per_s = 5};
	struct sockaddr_un at = {0};
	socklen_t n = sizeof(at);
	const uint16_t port = 53;
	struct gate gate, moved;
	int fd, client, worker;

	(void)state;
	gate_init(&gate);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(gate_open_socket(&gate, fd, 0), 0);
	assert_int_equal(gate_connect(&gate), 0);
	assert_int_equal(gate.listener_count, 1);
	assert_int_equal(gate.listeners[0].kind, MESSAGE_LISTEN_UNIX);
	assert_int_equal(gate_repair(&gate), 0);
	assert_int_equal(gate_watch(&gate, host, NULL), 0);
	assert_null(gate.watch);
	assert_int_equal(gate_set_traffic(&gate, &port, 1, &bounds), 0);
	assert_int_equal(gate_dropped(&gate).packets, 0);
	assert_int_equal(gate.listener_count, 0);
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (const struct sockaddr *)&at, n), 0);
	gate_move(&moved, &gate);
	gate_close(&gate);
	assert_int_equal(gate_listen(&moved), 0);
	assert_int_equal(moved.listener_count, 1);
	worker = accept4(moved.listeners[0].fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(worker >= 0);
	close(worker);
	close(client);
	gate_close_handed_out(&moved);
	assert_int_equal(gate_remove(&moved, host, NULL, false), 0);
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_not_equal(connect(client, (const struct sockaddr *)&at, n), 0);
	close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, open_host, close_host)
	        T(connections_to_anywhere_reach_the_listener),
	        T(a_gate_from_the_store_is_as_good),
	        T(a_gate_from_the_store_gets_its_own_addresses),
	        T(nothing_leads_to_a_gate_before_it_is_connected),
	        T(the_store_is_filled_again),
	        T(damage_is_mended_and_named),
	        T(a_link_that_is_gone_cannot_be_mended),
	        T(a_link_that_goes_while_it_is_looked_at_is_gone),
	        T(a_pinned_gate_is_adopted),
	        T(links_are_taken_away_while_the_loop_goes_on),
	        T(taking_links_away_can_be_ended),
	        T(a_pin_without_its_gate_is_said),
	        T(other_udp_ports_are_in_force),
	        T(other_bounds_are_in_force),
	        T(what_waits_in_a_queue_moves_to_the_next_listener),
	        T(a_gate_that_sleeps_refuses_and_wakes),
	        T(a_gate_that_dozes_refuses_and_wakes),
	        T(a_gate_is_watched_where_it_has_moved_to),
	        T(links_that_are_alike),
	        T(a_foreign_change_is_noticed_and_mended),
	        T(whoever_is_told_may_close_the_gate),
	        T(one_socket_hears_of_all_gates),
	        T(routing_is_heard_again_when_another_gate_is_connected),
	        T(lost_notifications_are_made_up_for),
	        T(a_socket_is_a_gate),
	};
	int failed;

	if (!enter_host()) {
		printf("skipped: no user namespaces here\n");
		return 0;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
