/* SPDX-License-Identifier: Apache-2.0 */
/* State files: what is written is read the same; everything else is refused, whole, with a reason.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "state_fixture.h"

static const struct attach_pair labels[] = {{"team", "blue \"sky\" \xc3\xa9"}, {"a/b", ""}};
static const struct attach_pair vars[] = {{"org", "acme"}};
static gid_t groups[IDENTITY_GROUPS_MAX] = {4294967293u, 0};

static struct attach_record sample(void)
{
	return (struct attach_record){.name = "one",
	        .id = UINT64_MAX - 5,
	        .kind = ATTACH_PID,
	        .netns = (char *)(uintptr_t) "",
	        .pid = 4711,
	        .pid_start_time = UINT64_MAX,
	        .container = {"docker", "abc", "web"},
	        .policy = (char *)(uintptr_t) "/etc/p.yaml",
	        .observe = true,
	        .labels = {2, labels},
	        .vars = {1, vars},
	        .uid = 4294967294u,
	        .gid = 7,
	        .asked = true,
	        .group_count = 2,
	        .groups = groups,
	        .created_ms = 1795306914480,
	        .expires_ms = 1795306915480,
	        .generation = 3,
	        .seed = {1, 2, 255},
	        .paused = true,
	        .reason = "because",
	        .root_known = true,
	        .root = {9, 8, 7, [31] = 6},
	        .dropped_known = true,
	        .dropped = UINT64_MAX - 1};
}

static struct gate sample_gate(void)
{
	struct gate gate;

	gate_init(&gate);
	gate.kind = GATE_DIVERT;
	snprintf(gate.device, sizeof(gate.device), "tap0");
	snprintf(gate.host_link, sizeof(gate.host_link), "vg12345678");
	assert_true(ip_parse(SLICE("198.18.0.1"), &gate.gate4));
	assert_true(ip_parse(SLICE("fd76::1"), &gate.gate6));
	assert_true(ip_parse(SLICE("198.18.0.2"), &gate.sandbox4));
	gate.bits4 = 32;
	gate.bits6 = 128;
	assert_true(ip_prefix_parse(SLICE("198.18.0.0/16"), &gate.source4));
	memcpy(gate.mac, "\x02\x00\xff\x01\x02\x03", 6);
	gate.tcp_port = 65535;
	gate.udp_ports[0] = 123;
	gate.udp_ports[1] = 65535;
	gate.udp_port_count = 2;
	gate.bounds = (struct fence_bounds){1234, FENCE_PER_S_MAX, 0, 20000};
	return gate;
}

static void save_sample(void)
{
	struct attach_record record = sample();
	struct gate gate = sample_gate();

	assert_int_equal(state_save(dir, &record, &gate), 0);
}

static int load_file(const char *file, char error[STATE_ERROR_MAX])
{
	struct attach_record record;
	struct gate gate;

	error[0] = 0;
	gate_init(&gate);
	int result = state_load(dir, file, &record, &gate, error);
	attach_record_fini(&record);
	return result;
}

static void what_is_written_is_read(void **state)
{
	const struct attach_record was = sample();
	const struct gate gate_was = sample_gate();
	struct attach_record is;
	struct gate gate;
	char error[STATE_ERROR_MAX] = "";

	(void)state;
	save_sample();
	gate_init(&gate);
	assert_int_equal(state_load(dir, "one.json", &is, &gate, error), 0);
	assert_string_equal(is.name, was.name);
	assert_true(is.id == was.id && is.kind == was.kind && is.pid == was.pid);
	assert_true(is.pid_start_time == was.pid_start_time && is.observe && is.paused);
	assert_true(is.dropped_known && is.dropped == was.dropped);
	assert_memory_equal(&is.container, &was.container, sizeof(is.container));
	assert_string_equal(is.policy, was.policy);
	assert_string_equal(is.reason, was.reason);
	assert_true(is.uid == was.uid && is.gid == was.gid && is.generation == was.generation);
	assert_true(is.asked && is.group_count == 2);
	assert_memory_equal(is.groups, groups, 2 * sizeof(*groups));
	assert_true(is.created_ms == was.created_ms && is.expires_ms == was.expires_ms);
	assert_memory_equal(is.seed, was.seed, sizeof(is.seed));
	assert_true(is.root_known);
	assert_memory_equal(is.root, was.root, sizeof(is.root));
	assert_int_equal(is.labels.count, 2);
	assert_int_equal(is.vars.count, 1);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(is.labels.items[i].key, labels[i].key);
		assert_string_equal(is.labels.items[i].value, labels[i].value);
	}
	assert_memory_equal(&gate, &gate_was, offsetof(struct gate, netns));
	assert_false(is.undoing);
	attach_record_fini(&is);
}

static void an_attach_that_is_not_done_is_told_from_one_that_is(void **state)
{
	struct attach_record was = sample(), is;
	struct gate gate = sample_gate();
	char error[STATE_ERROR_MAX] = "";

	(void)state;
	was.undoing = true;
	gate.gate4 = gate.gate6 = gate.sandbox4 = (struct ip){0}; /* not known yet */
	assert_int_equal(state_save(dir, &was, &gate), 0);
	gate_init(&gate);
	assert_int_equal(state_load(dir, "one.json", &is, &gate, error), 0);
	assert_true(is.undoing);
	assert_string_equal(gate.device, "tap0");
	assert_string_equal(gate.host_link, "vg12345678");
	attach_record_fini(&is);
}

/* A prepared namespace has no policy; any other sandbox has one. */
static void prepared_and_claimed_ones(void **state)
{
	struct attach_record was = sample(), is;
	struct gate gate = sample_gate();
	char error[STATE_ERROR_MAX] = "";

	(void)state;
	assert_false(state_exists(dir, "one"));
	was.kind = ATTACH_NETNS;
	was.prepared = true;
	was.policy = (char *)(uintptr_t) "";
	assert_int_equal(state_save(dir, &was, &gate), 0);
	assert_true(state_exists(dir, "one"));
	gate_init(&gate);
	assert_int_equal(state_load(dir, "one.json", &is, &gate, error), 0);
	assert_true(is.prepared && !is.claimed);
	assert_string_equal(is.policy, "");
	attach_record_fini(&is);
	was.policy = (char *)(uintptr_t) "/etc/p.yaml";
	assert_int_equal(state_save(dir, &was, &gate), 0);
	assert_int_equal(load_file("one.json", error), -EINVAL);
	assert_non_null(strstr(error, "policy"));
	was.prepared = false;
	was.claimed = true;
	assert_int_equal(state_save(dir, &was, &gate), 0);
	gate_init(&gate);
	assert_int_equal(state_load(dir, "one.json", &is, &gate, error), 0);
	assert_true(is.claimed && !is.prepared);
	attach_record_fini(&is);
	was.policy = (char *)(uintptr_t) "";
	assert_int_equal(state_save(dir, &was, &gate), 0);
	assert_int_equal(load_file("one.json", error), -EINVAL);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
	static char text[TEXT_MAX];
	char error[STATE_ERROR_MAX];
	size_t n;

	(void)state;
	save_sample();
	n = read_text(text);
	for (size_t cut = 0; cut < n - 1; cut++) {
		write_text("one.json", text, cut);
		assert_int_equal(load_file("one.json", error), -EINVAL);
		assert_non_null(strstr(error, "one.json"));
	}
}

static void values_out_of_bounds_are_refused(void **state)
{
	(void)state;
	refuses("\"vethguard\": 1", "\"vethguard\": 2", "vethguard");
	refuses("\"vethguard\": 1", "\"vethguard\": 1, \"attaching\": 1", "damaged");
	refuses("\"vethguard\": 1", "\"vethguard\": 1, \"more\": 1", "damaged");
	refuses("\"vethguard\": 1", "\"vethguard\": 1, \"vethguard\": 1", "damaged");
	refuses("\"name\": \"one\"", "\"name\": \"two\"", "name");
	refuses("\"name\": \"one\"", "\"name\": \"../one\"", "name");
	refuses("fffffffffffffffa", "0000000000000000", "id");
	refuses("fffffffffffffffa", "fffffffffffffff", "id");
	refuses("fffffffffffffffa", "FFFFFFFFFFFFFFFA", "id");
	refuses("\"kind\": \"pid\"", "\"kind\": \"pidd\"", "kind");
	refuses("4711", "-1", "pid");
	refuses("4711", "\"4711\"", "damaged");
	refuses("/etc/p.yaml", "etc/p.yaml", "policy");
	refuses("4294967294", "4294967295", "uid");
	refuses("4294967294", "-1", "uid");
	refuses("\"gid\": 7", "\"gid\": 1e3", "damaged");
	refuses("4294967293", "4294967295", "groups");
	refuses("4294967293", "-1", "groups");
	refuses("4294967293", "\"1\"", "groups");
	refuses("\"groups\": [", "\"groups\": 1, \"more\": [", "damaged");
	refuses("1795306915480", "-1", "expires_ms");
	refuses("0000000000000003", "0000000000000000", "generation");
	refuses("fffffffffffffffe", "fffffffffffffffg", "dropped");
	refuses("0102ff", "0102fg", "seed");
	refuses("090807", "09080g", "ca_root");
	refuses("090807", "0908", "ca_root");
	refuses("\"org\"", "\"1org\"", "vars");
	refuses("\"team\"", "\" team\"", "labels");
	refuses("198.18.0.1\"", "198.18.0.256\"", "gate");
	refuses("198.18.0.1\"", "fd76::9\"", "gate");
	refuses("198.18.0.0/16", "198.18.0.1/16", "gate");
	refuses("\"bits4\": 32", "\"bits4\": 33", "gate");
	refuses("\"bits6\": 128", "\"bits6\": -1", "gate");
	refuses("\"tcp_port\": 65535", "\"tcp_port\": 0", "gate");
	refuses("\"tcp_port\": 65535", "\"tcp_port\": 65536", "gate");
	refuses("123,", "0,", "gate");
	refuses("123,", "65536,", "gate");
	refuses("1234,", "-1,", "gate");
	refuses("1234,", "1000001,", "gate");
	refuses("1234,", "\"1\",", "gate");
	refuses("1234,\n   1000000,", "", "gate");
	refuses("20000", "1000001", "gate");
	refuses("20000", "-1", "gate");
	refuses("1234,", "1, 1234,", "gate");
	refuses("\"divert\": true", "\"divert\": true, \"paused\": true", "gate");
	refuses("tap0", "a-name-that-is-too-long", "gate");
	refuses("0200ff010203", "0200ff0102", "gate");
}

/* There was no bound for datagrams: its fence is set anew. */
static void a_file_of_before_a_bound_is_read(void **state)
{
	char error[STATE_ERROR_MAX];
	struct attach_record record;
	struct gate gate;

	(void)state;
	save_changed(",\n   20000", "");
	gate_init(&gate);
	assert_int_equal(state_load(dir, "one.json", &record, &gate, error), 0);
	assert_int_equal(gate.bounds.connections_per_s, 1234);
	assert_int_equal(gate.bounds.datagrams_per_s, 0);
	attach_record_fini(&record);
}

/* Every daemon before this one wrote that its gate is not paused. */
static void a_file_of_when_gates_could_be_paused_is_read(void **state)
{
	char error[STATE_ERROR_MAX];

	(void)state;
	save_changed("\"divert\": true", "\"divert\": true, \"paused\": false");
	assert_int_equal(load_file("one.json", error), 0);
}

static void files_of_others_are_refused(void **state)
{
	char error[STATE_ERROR_MAX];

	(void)state;
	save_sample();
	assert_int_equal(load_file("one.json", error), 0);
	assert_int_equal(fchmodat(dir, "one.json", 0620, 0), 0);
	assert_int_equal(load_file("one.json", error), -EINVAL);
	assert_int_equal(fchmodat(dir, "one.json", 0600, 0), 0);
	assert_int_equal(linkat(dir, "one.json", dir, "two.json", 0), 0);
	assert_int_equal(load_file("one.json", error), -EINVAL);
	assert_int_equal(unlinkat(dir, "two.json", 0), 0);
	assert_int_equal(renameat(dir, "one.json", dir, "two.json"), 0);
	assert_int_equal(symlinkat("two.json", dir, "one.json"), 0);
	assert_int_equal(load_file("one.json", error), -EINVAL);
	assert_int_equal(load_file("two.json", error), -EINVAL); /* another's name inside */
	assert_int_equal(load_file("none.json", error), -EINVAL);
}

static void a_file_too_large_is_refused(void **state)
{
	char error[STATE_ERROR_MAX], *text = malloc(STATE_FILE_MAX + 1);

	(void)state;
	memset(text, ' ', STATE_FILE_MAX + 1);
	write_text("one.json", text, STATE_FILE_MAX + 1);
	assert_int_equal(load_file("one.json", error), -EINVAL);
	assert_non_null(strstr(error, "size"));
	free(text);
}

/* The largest that attach lets in. */
static void all_bounds_at_once_fit(void **state)
{
	static struct attach_pair many_labels[ATTACH_LABELS_MAX], many_vars[ATTACH_VARS_MAX];
	static char keys[ATTACH_VARS_MAX][ATTACH_VAR_KEY_MAX + 1];
	static char value[ATTACH_VAR_VALUE_MAX + 1], path[MESSAGE_PATH_MAX + 1];
	struct attach_record record = sample();
	struct gate gate = sample_gate();
	char error[STATE_ERROR_MAX];

	(void)state;
	memset(value, '"', ATTACH_LABEL_VALUE_MAX);
	memset(path, '/', MESSAGE_PATH_MAX);
	for (size_t i = 0; i < ATTACH_VARS_MAX; i++) {
		memset(keys[i], 'k', ATTACH_LABEL_KEY_MAX);
		keys[i][1] = (char)('a' + i % 26);
		keys[i][2] = (char)('a' + i / 26);
		many_vars[i] = (struct attach_pair){keys[i], value};
		if (i < ATTACH_LABELS_MAX)
			many_labels[i] = many_vars[i];
	}
	record.labels = (struct attach_pairs){ATTACH_LABELS_MAX, many_labels};
	record.vars = (struct attach_pairs){ATTACH_VARS_MAX, many_vars};
	record.policy = record.netns = path;
	record.group_count = IDENTITY_GROUPS_MAX;
	gate.udp_port_count = FENCE_UDP_PORTS_MAX;
	for (size_t i = 0; i < FENCE_UDP_PORTS_MAX; i++)
		gate.udp_ports[i] = 65535;
	assert_int_equal(state_save(dir, &record, &gate), 0);
	assert_int_equal(load_file("one.json", error), 0);
	record.groups = calloc(IDENTITY_GROUPS_MAX + 1, sizeof(*groups));
	assert_non_null(record.groups);
	record.group_count++;
	assert_int_equal(state_save(dir, &record, &gate), 0);
	assert_int_equal(load_file("one.json", error), -EINVAL);
	free(record.groups);
}

/* As a version before wrote it. */
static void a_file_without_groups_is_read(void **state)
{
	struct attach_record record = sample(), is;
	struct gate gate = sample_gate();
	char error[STATE_ERROR_MAX] = "";

	(void)state;
	record.asked = record.dropped_known = record.root_known = false;
	assert_int_equal(state_save(dir, &record, &gate), 0);
	gate_init(&gate);
	assert_int_equal(state_load(dir, "one.json", &is, &gate, error), 0);
	assert_true(!is.dropped_known && !is.asked && is.group_count == 0 &&
	            attach_record_identity(&is).uid == is.uid);
	attach_record_fini(&is);
}

static void containers_are_plain_text(void **state)
{
	struct attach_container c = {"docker", "0123abc", "web \xc3\xa9"};

	(void)state;
	assert_null(attach_container_objection(&c));
	strcpy(c.engine, "\x1b]0;x\a");
	assert_non_null(attach_container_objection(&c));
	c = (struct attach_container){"docker", "01\n23", "web"};
	assert_non_null(attach_container_objection(&c));
	c = (struct attach_container){"docker", "0123", "we\x7f"};
	assert_non_null(attach_container_objection(&c));
}

static void labels_and_variables_have_bounds(void **state)
{
	static struct attach_pair pairs[ATTACH_VARS_MAX + 1];
	static char keys[ATTACH_VARS_MAX + 1][8], long_value[ATTACH_VAR_VALUE_MAX + 2];
	const struct attach_pair bad[] = {{"", "x"}, {"-a", "x"}, {"a b", "x"}, {"a", "x\n"},
	        {"a", long_value}, {"a=b", "x"}};
	struct attach_pairs all = {2, pairs};
	const struct attach_pair *culprit;

	(void)state;
	memset(long_value, 'x', sizeof(long_value) - 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pairs[0] = (struct attach_pair){"fine", "x"};
		pairs[1] = bad[i];
		assert_non_null(attach_labels_objection(&all, &culprit));
		assert_ptr_equal(culprit, &pairs[1]);
		assert_non_null(attach_vars_objection(&all, &culprit));
		assert_ptr_equal(culprit, &pairs[1]);
	}
	for (size_t i = 0; i <= ATTACH_VARS_MAX; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
		pairs[i] = (struct attach_pair){keys[i], "v"};
	}
	all.count = ATTACH_LABELS_MAX;
	assert_null(attach_labels_objection(&all, &culprit));
	all.count++;
	assert_non_null(attach_labels_objection(&all, &culprit));
	assert_null(culprit);
	all.count = ATTACH_VARS_MAX;
	assert_null(attach_vars_objection(&all, &culprit));
	all.count++;
	assert_non_null(attach_vars_objection(&all, &culprit));
	all.count = 2;
	pairs[1] = pairs[0];
	assert_non_null(attach_vars_objection(&all, &culprit));
	assert_ptr_equal(culprit, &pairs[1]);
}

static void what_it_is_attached_to_in_words(void **state)
{
	struct attach_record record = sample();
	char text[512], cut[24];

	(void)state;
	attach_record_describe(&record, text, sizeof(text));
	assert_ptr_equal(strstr(text, "pid 4711, container web (docker abc), policy /etc/p.yaml, "
	                              "label "),
	        text);
	assert_non_null(strstr(text, ", var "));
	attach_record_describe(&record, cut, sizeof(cut));
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_memory_equal(cut, text, sizeof(cut) - 1);
	record = (struct attach_record){.kind = ATTACH_NETNS,
	        .netns = (char *)(uintptr_t) "/run/netns/a",
	        .policy = (char *)(uintptr_t) "/p"};
	attach_record_describe(&record, text, sizeof(text));
	assert_string_equal(text, "netns /run/netns/a, policy /p");
	record.kind = ATTACH_INTERFACE;
	snprintf(record.interface, sizeof(record.interface), "tap0");
	attach_record_describe(&record, text, sizeof(text));
	assert_string_equal(text, "interface tap0, policy /p");
}

static void removing_is_done_once(void **state)
{
	(void)state;
	save_sample();
	assert_int_equal(state_remove(dir, "one"), 0);
	assert_int_equal(faccessat(dir, "one.json", F_OK, 0), -1);
	assert_int_equal(state_remove(dir, "one"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(what_is_written_is_read),
	        TEST(an_attach_that_is_not_done_is_told_from_one_that_is),
	        TEST(prepared_and_claimed_ones), TEST(a_file_cut_anywhere_is_refused),
	        TEST(values_out_of_bounds_are_refused), TEST(a_file_of_before_a_bound_is_read),
	        TEST(a_file_of_when_gates_could_be_paused_is_read),
	        TEST(files_of_others_are_refused), TEST(a_file_too_large_is_refused),
	        TEST(a_file_without_groups_is_read), TEST(containers_are_plain_text),
	        TEST(all_bounds_at_once_fit), TEST(labels_and_variables_have_bounds),
	        TEST(what_it_is_attached_to_in_words), TEST(removing_is_done_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
