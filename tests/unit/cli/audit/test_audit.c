/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard audit: times as people write them, rows from hostile lines, the table, and verify on
 * files of every sort. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/audit/audit.h"
#include "recorder/ocsf/ocsf.h"

#include "../../recorder/samples.h"

#define NOW 1732120000000

static char path[64];

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
	        {"30s", NOW - 30000},
	        {"10m", NOW - 600000},
	        {"2h", NOW - 7200000},
	        {"1d", NOW - 86400000},
	        {"2024-11-20T16:26:40Z", NOW},
	        {"2024-11-20 16:26:40z", NOW},
	        {"2024-11-20T16:26:40.5Z", NOW + 500},
	        {"2024-11-20T17:26:40+01:00", NOW},
	        {"2024-11-20T11:56:40-04:30", NOW},
	        {"2024-02-29T00:00:00Z", 1709164800000},
	};
	static const char *const bad[] = {"", "10", "m", "10x", "10mm", "-10m", " 10m", "99999999m",
	        "2024-13-01", "2024-00-01", "2024-02-30", "2023-02-29T00:00:00Z", "2024-11-20T",
	        "2024-11-20T24:00:00Z", "2024-11-20T16:60:00Z", "2024-11-20T16:26:40.Z",
	        "2024-11-20T16:26:40+1", "2024-11-20T16:26:40Zx", "2024-11-20x", "24-11-20",
	        "yesterday"};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(audit_when_parse(good[i].text, NOW, &ms));
		assert_int_equal(ms, good[i].ms);
	}
	assert_true(audit_when_parse("2024-11-20", NOW, &ms));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(audit_when_parse(bad[i], NOW, &ms));
}

static bool read_row(const char *text, struct audit_row *row)
{
	json_t *event = json_loads(text, JSON_DECODE_ANY, NULL);
	bool rc;

	assert_non_null(event);
	rc = audit_row_read(event, row);
	json_decref(event);
	return rc;
}

static void test_lines_that_are_no_events(void **state)
{
	static const char *const lines[] = {"[]", "\"x\"", "1", "null", "{}", "{\"time\":1}",
	        "{\"time\":\"1\",\"class_uid\":4002}", "{\"time\":1,\"class_uid\":9999}",
	        "{\"class_uid\":4002}"};
	struct audit_row row;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(read_row(lines[i], &row));
}

static void test_attributes_of_wrong_types_are_nothing(void **state)
{
	struct audit_row row;

	(void)state;
	assert_true(read_row("{\"time\":1,\"class_uid\":4002,\"http_request\":7,\"device\":[],"
	                     "\"traffic\":{\"bytes\":\"x\"},"
	                     "\"action_id\":\"2\",\"firewall_rule\":{\"name\":{}}}",
	        &row));
	assert_string_equal(row.sandbox, "");
	assert_false(row.has_bytes);
	assert_false(row.refused);
	assert_int_equal(row.decision, AUDIT_OTHER);
}

static void test_what_a_terminal_obeys_is_escaped(void **state)
{
	struct audit_row row;

	(void)state;
	assert_true(read_row(
	        "{\"time\":1,\"class_uid\":4003,\"query\":{\"type\":\"A\",\"hostname\":"
	        "\"\\u001b[2J\\u009b31m\\u202e\\u0007x\"},\"device\":{\"name\":\"\\u001b]0;t\"}}",
	        &row));
	for (const char *p = row.what; *p; p++)
		assert_in_range(*p, 0x20, 0x7e);
	for (const char *p = row.sandbox; *p; p++)
		assert_in_range(*p, 0x20, 0x7e);
}

static void test_a_request_without_a_host_shows_where_it_went(void **state)
{
	struct audit_row row;

	(void)state;
	assert_true(
	        read_row("{\"time\":1,\"class_uid\":4002,\"http_request\":{\"http_method\":\"GET\","
	                 "\"url\":{\"scheme\":\"https\",\"port\":443,\"path\":\"/x\"}},"
	                 "\"dst_endpoint\":{\"ip\":\"fd00::1\",\"port\":443}}",
	                &row));
	assert_string_equal(row.what, "GET https://[fd00::1]:443/x");
}

/* As a rule of the policy would name it; packets and TLS connections have no such name. */
static void test_a_connection_is_told_as_a_rule_names_it(void **state)
{
#define CONNECTION(protocol, disposition, more)                                          \
	"{\"time\":1,\"class_uid\":4001,\"action_id\":3,\"disposition_id\":" disposition \
	",\"connection_info\":{\"protocol_name\":\"" protocol                            \
	"\"},\"dst_endpoint\":{\"hostname\":\"a.example\",\"port\":25}" more "}"
	static const char *const cases[][2] = {
	        {CONNECTION("tcp", "17", ""), "tcp://a.example:25"},
	        {CONNECTION("udp", "27", ""), "udp://a.example:25"},
	        {CONNECTION("udp", "6", ""), "udp a.example:25"},
	        {CONNECTION("icmp", "17", ""), "icmp a.example:25"},
	        {CONNECTION("tcp", "17", ",\"tls\":{\"sni\":\"a.example\"}"), "tls a.example:25"},
	        {CONNECTION("tcp", "17", ",\"tls\":{\"sni\":7}"), "tcp://a.example:25"},
	        {CONNECTION("\\u001b[31m", "17", ""), "\\x1b[31m a.example:25"},
	};
	struct audit_row row;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(read_row(cases[i][0], &row));
		assert_string_equal(row.what, cases[i][1]);
	}
	assert_true(read_row(CONNECTION("tcp", "27", ""), &row));
	assert_int_equal(row.decision, AUDIT_OBSERVED);
	assert_false(row.refused);
}

static void test_a_row_of_a_life_says_something(void **state)
{
	struct audit_row row;

	(void)state;
	assert_true(read_row("{\"time\":1,\"class_uid\":6002,\"activity_id\":8,"
	                     "\"message\":\"vethguardd goes on in a new audit file\"}",
	        &row));
	assert_string_equal(row.what, "vethguardd goes on in a new audit file");
	assert_true(
	        read_row("{\"time\":1,\"class_uid\":6002,\"activity_id\":7,\"message\":\"long\","
	                 "\"status_detail\":\"incident 42\"}",
	                &row));
	assert_string_equal(row.what, "incident 42");
}

static void test_a_credential_is_named_where_it_was_used(void **state)
{
	struct audit_row row;

	(void)state;
	assert_true(read_row("{\"time\":1,\"class_uid\":4002,\"action_id\":1,"
	                     "\"firewall_rule\":{\"name\":\"read\"},\"status_detail\":\"late\","
	                     "\"unmapped\":{\"credential\":\"a\\u001bpi\"}}",
	        &row));
	assert_string_equal(row.why, "read (credential a\\x1bpi): late");
	assert_true(read_row("{\"time\":1,\"class_uid\":4002,\"action_id\":2,\"disposition_id\":27,"
	                     "\"firewall_rule\":{\"name\":\"read\"},\"status_detail\":\"paused\","
	                     "\"unmapped\":{\"credential\":\"api\"}}",
	        &row));
	assert_string_equal(row.why, "read: paused");
}

static void test_an_event_is_found_by_its_id(void **state)
{
	static const struct {
		const char *line;
		bool is;
	} lines[] = {
	        {"{\"metadata\":{\"uid\":\"0ef2\"}}", true},
	        {"{\"metadata\":{\"uid\":\"0ef20\"}}", false},
	        {"{\"metadata\":{\"uid\":1}}", false},
	        {"{\"finding_info\":{\"related_events\":[7,{\"uid\":\"1\"},{\"uid\":\"0ef2\"}]}}",
	                true},
	        {"{\"finding_info\":{\"related_events\":{\"uid\":\"0ef2\"}}}", false},
	        {"[]", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		json_t *event = json_loads(lines[i].line, 0, NULL);

		assert_int_equal(audit_row_is_about(event, "0ef2"), lines[i].is);
		json_decref(event);
	}
}

static void test_endless_texts_are_bounded(void **state)
{
	char *line = malloc(200000);
	struct audit_row row;

	(void)state;
	strcpy(line, "{\"time\":1,\"class_uid\":4003,\"query\":{\"hostname\":\"");
	memset(line + strlen(line), 'x', 100000);
	strcpy(line + 47 + 100000 - 1, "\"}}");
	assert_true(read_row(line, &row));
	assert_true(strlen(row.what) < AUDIT_WHAT_MAX);
	free(line);
}

static char *print_row(const struct audit_row *row, int width, bool color)
{
	struct audit_table table;
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	audit_table_init(&table, out, width, color);
	audit_table_print(&table, row);
	fclose(out);
	return text;
}

static void test_table_fits_its_terminal(void **state)
{
	struct audit_row row = {
	        .time_ms = NOW, .decision = AUDIT_DENIED, .has_bytes = true, .bytes = 123456789};

	(void)state;
	memset(row.what, 'w', 500);
	memset(row.why, 'y', 500);
	memset(row.sandbox, 's', 100);
	for (int width = 80; width < 250; width++) {
		char *text = print_row(&row, width, false), *save = NULL;

		for (char *line = strtok_r(text, "\n", &save); line;
		        line = strtok_r(NULL, "\n", &save)) {
			assert_true(strlen(line) <= (size_t)width);
			assert_true(line[strlen(line) - 1] != ' ');
		}
		free(text);
	}
}

static size_t count_of(const char *text, char letter)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == letter;
	return n;
}

/* All that a person has to read is shown, however narrow the terminal; text sent to fill the
 * screen is cut, and marked as cut. */
static void test_what_does_not_fit_goes_on_in_the_next_line(void **state)
{
	struct audit_row row = {.time_ms = NOW, .decision = AUDIT_DENIED};

	(void)state;
	memset(row.what, '#', 255);
	memset(row.why, '%', 255);
	memset(row.sandbox, '@', 63);
	for (int width = 40; width < 250; width++) {
		char *text = print_row(&row, width, false);

		if (width >= 80) {
			assert_int_equal(count_of(text, '#'), 255);
			assert_int_equal(count_of(text, '%'), 255);
			assert_int_equal(count_of(text, '@'), 63);
			assert_null(strstr(text, "..."));
		}
		free(text);
	}
	memset(row.what, '#', 5000);
	for (int width = 80; width < 250; width++) {
		char *text = print_row(&row, width, false);

		assert_non_null(strstr(text, "#..."));
		assert_in_range(count_of(text, '\n'), 12, 2 + 12 + 12);
		free(text);
	}
}

/* Reasons before bytes: where there is no room for both, bytes go. */
static void test_the_reason_is_there_at_any_width(void **state)
{
	struct audit_row row = {.time_ms = NOW,
	        .decision = AUDIT_DENIED,
	        .has_bytes = true,
	        .bytes = 123456789,
	        .what = "POST https://api.example/upload",
	        .why = "no rule"};

	(void)state;
	for (int width = 80; width < 250; width++) {
		char *text = print_row(&row, width, false);

		assert_non_null(strstr(text, row.what));
		assert_non_null(strstr(text, row.why));
		assert_int_equal(strstr(text, "123M") != NULL, width >= 120);
		if (width >= 120)
			assert_true(strstr(text, row.why) < strstr(text, "123M"));
		assert_non_null(strstr(text, "2024-11-20"));
		free(text);
	}
}

/* If rows have only the time of day, each day is printed before its first row. */
static void test_days_are_told_once(void **state)
{
	struct audit_row row = {.time_ms = NOW, .decision = AUDIT_ALLOWED, .what = "x"};
	struct audit_table table;
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	(void)state;
	audit_table_init(&table, out, 80, false);
	audit_table_print(&table, &row);
	audit_table_print(&table, &row);
	row.time_ms += 86400000;
	audit_table_print(&table, &row);
	fclose(out);
	assert_int_equal(count_of(text, '\n'), 2 + 2 + 3);
	assert_non_null(strstr(text, "\n2024-11-20\n"));
	assert_non_null(strstr(text, "\n2024-11-21\n"));
	free(text);
}

static void test_color_only_where_wanted(void **state)
{
	struct audit_row row = {.time_ms = NOW, .decision = AUDIT_DENIED};
	char *text = print_row(&row, 100, false);

	(void)state;
	assert_null(strchr(text, '\033'));
	free(text);
	text = print_row(&row, 100, true);
	assert_non_null(strchr(text, '\033'));
	free(text);
}

static void test_nothing_is_cut_in_a_pipe(void **state)
{
	struct audit_row row = {.time_ms = NOW, .decision = AUDIT_ALLOWED};
	char *text;

	(void)state;
	memset(row.what, 'w', 500);
	text = print_row(&row, 0, false);
	assert_non_null(strstr(text, row.what));
	free(text);
}

/* A sealed log of n lines. */
static char *make_log(unsigned n, size_t *size)
{
	struct ocsf_sandbox sandbox;
	struct chain chain;
	struct buf out;
	struct event event = sample_denied();
	char *text;

	buf_init(&out, 1 << 20);
	assert_int_equal(chain_init(&chain), 0);
	assert_int_equal(
	        ocsf_sandbox_init(&sandbox, 1, SLICE("agent-7"), SLICE("p"), SLICE("f")), 0);
	for (unsigned i = 0; i < n; i++) {
		event.id++;
		assert_int_equal(ocsf_append(&out, &chain, &sandbox, &event), 0);
	}
	text = malloc(out.len + 1);
	memcpy(text, buf_bytes(&out), out.len);
	text[out.len] = '\0';
	*size = out.len;
	ocsf_sandbox_fini(&sandbox);
	chain_fini(&chain);
	buf_fini(&out);
	return text;
}

/* A command line, which getopt_long() reorders. */
#define ARGV(...) ((char **)(const char *[]){__VA_ARGS__, NULL})

static int run_on(int (*command)(int argc, char **argv), const char *text, size_t n, const char *a,
        const char *b)
{
	char **argv = ARGV("command", path, a, b);
	FILE *f = fopen(path, "w");
	int saved = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO), status;

	assert_non_null(f);
	fwrite(text, 1, n, f);
	fclose(f);
	fflush(stdout);
	assert_non_null(freopen("/dev/null", "w", stdout));
	assert_non_null(freopen("/dev/null", "w", stderr));
	status = command(2, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	close(saved);
	close(errors);
	return status;
}

static void test_whole_log_verifies(void **state)
{
	size_t n;
	char *log = make_log(5, &n);

	(void)state;
	assert_int_equal(run_on(audit_verify, log, n, NULL, NULL), 0);
	assert_int_equal(run_on(audit_verify, log, 0, NULL, NULL), 0);
	free(log);
}

static void test_any_changed_byte_breaks_it(void **state)
{
	size_t n;
	char *log = make_log(3, &n);

	(void)state;
	for (size_t i = 0; i < n; i += 97) {
		char saved = log[i];

		log[i] = saved == '1' ? '2' : '1';
		assert_int_equal(run_on(audit_verify, log, n, NULL, NULL), 1);
		log[i] = saved;
	}
	free(log);
}

static void test_removed_doubled_and_moved_lines_break_it(void **state)
{
	size_t n;
	char *log = make_log(4, &n), *other = malloc(2 * n);
	char *second = strchr(log, '\n') + 1, *third = strchr(second, '\n') + 1,
	     *fourth = strchr(third, '\n') + 1;
	size_t a = (size_t)(second - log), b = (size_t)(third - second),
	       c = (size_t)(fourth - third);
	size_t d = n - a - b - c;

	(void)state;
	memcpy(other, log, a); /* without the second */
	memcpy(other + a, third, c + d);
	assert_int_equal(run_on(audit_verify, other, a + c + d, NULL, NULL), 1);
	memcpy(other, log, a + b); /* the second twice */
	memcpy(other + a + b, second, b + c + d);
	assert_int_equal(run_on(audit_verify, other, n + b, NULL, NULL), 1);
	memcpy(other, log, a); /* third before second */
	memcpy(other + a, third, c);
	memcpy(other + a + c, second, b);
	memcpy(other + a + b + c, fourth, d);
	assert_int_equal(run_on(audit_verify, other, n, NULL, NULL), 1);
	/* A log that was moved away in between: the rest is whole by itself. */
	assert_int_equal(run_on(audit_verify, second, n - a, NULL, NULL), 0);
	/* A torn last line. */
	assert_int_equal(run_on(audit_verify, log, n - 1, NULL, NULL), 1);
	free(other);
	free(log);
}

static void test_two_chains_in_one_file_break_it(void **state)
{
	size_t n, m;
	char *one = make_log(2, &n), *two = make_log(2, &m), *both = malloc(n + m);

	(void)state;
	memcpy(both, one, n);
	memcpy(both + n, two, m);
	assert_int_equal(run_on(audit_verify, both, n + m, NULL, NULL), 1);
	free(one);
	free(two);
	free(both);
}

static void test_anchor(void **state)
{
	static const char missing[] =
	        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct seal seal;
	size_t n;
	char *log = make_log(3, &n), *second = strchr(log, '\n') + 1;

	(void)state;
	assert_int_equal(seal_parse(slice_of(log, (size_t)(second - log) - 1), &seal), 0);
	assert_int_equal(run_on(audit_verify, log, n, "--anchor", seal.own.hash), 0);
	assert_int_equal(
	        run_on(audit_verify, second, n - (size_t)(second - log), "--anchor", seal.own.hash),
	        1);
	assert_int_equal(run_on(audit_verify, log, n, "--anchor", missing), 1);
	assert_int_equal(run_on(audit_verify, log, n, "--anchor", "abc"), 2);
	free(log);
}

static void test_show_and_its_usage(void **state)
{
	size_t n;
	char *log = make_log(3, &n);

	(void)state;
	assert_int_equal(run_on(audit_show, log, n, NULL, NULL), 0);
	assert_int_equal(run_on(audit_show, log, n, "--denied", "--json"), 0);
	assert_int_equal(run_on(audit_show, log, n, "--since", "1h"), 0);
	assert_int_equal(run_on(audit_show, log, n, "--since", "soon"), 2);
	assert_int_equal(run_on(audit_show, log, n, "--nonsense", NULL), 2);
	assert_int_equal(run_on(audit_show, log, n, "second-file", NULL), 2);
	assert_int_equal(run_on(audit_show, "nonsense\n", 9, NULL, NULL), 1);
	/* A line that cannot be about the event is skipped; one that may be is parsed. */
	assert_int_equal(run_on(audit_show, "nonsense\n", 9, "--event", "0ef2"), 0);
	assert_int_equal(run_on(audit_show, "about 0ef2\n", 11, "--event", "0ef2"), 1);
	free(log);
}

static const struct option_spec pick_specs[] = {
        {"json", 'j', NULL, ""},
        {"event", 'e', "ID", ""},
        AUDIT_SPEC_SINCE,
        {"sandbox", 's', "NAME", ""},
        {"help", 'h', NULL, ""},
        AUDIT_SPEC_SOCKET,
        {NULL, 0, NULL, NULL},
};

#define NO_DAEMON "--socket=/nonexistent/control.sock"

static bool pick_of(struct audit_pick *pick, char **argv)
{
	return audit_pick_parse(pick, "vethguard audit test", pick_specs, argv) == 0;
}

static void test_a_file_or_a_daemon(void **state)
{
	static const struct {
		const char *words[4];
		int status;
	} cases[] = {
	        {{NO_DAEMON}, 3},
	        {{NO_DAEMON, "--json"}, 3},
	        {{NO_DAEMON, "log"}, 2},
	        {{"log", NO_DAEMON}, 2},
	        {{"-", NO_DAEMON}, 2},
	        {{NO_DAEMON, "--help"}, 0},
	        {{"--socket"}, 2},
	        {{"log"}, 0},
	};
	struct audit_pick pick;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char **argv = ARGV(cases[i].words[0], cases[i].words[1], cases[i].words[2]);

		assert_int_equal(audit_pick_parse(&pick, "vethguard audit test", pick_specs, argv),
		        cases[i].status);
		assert_false(audit_pick_asked(&pick) && cases[i].status == 0);
	}
}

static void test_options_stand_before_and_behind_the_file(void **state)
{
	struct audit_pick pick;

	(void)state;
	assert_true(pick_of(&pick,
	        ARGV("-s", "box", "log", "--event=0ef2", "--since", "2024-11-20T16:26:40Z", "-j")));
	assert_string_equal(pick.path, "log");
	assert_string_equal(pick.sandbox, "box");
	assert_string_equal(pick.event, "0ef2");
	assert_int_equal(pick.since_ms, NOW);
	assert_true(pick.json);
	assert_false(pick.help || pick.denied);
	assert_true(pick_of(&pick, ARGV("--help")));
	assert_true(pick.help);
	assert_true(pick_of(&pick, ARGV("--", "--help")));
	assert_string_equal(pick.path, "--help");
}

static void test_wrong_options(void **state)
{
	struct audit_pick pick;

	(void)state;
	assert_false(pick_of(&pick, ARGV("a", "b")));
	assert_false(pick_of(&pick, ARGV("a", "--denied"))); /* not in this table */
	assert_false(pick_of(&pick, ARGV("a", "--sandbox")));
	assert_false(pick_of(&pick, ARGV("a", "--since", "\033[2J")));
}

static void test_what_is_picked(void **state)
{
	static const char line[] = "{\"time\":5,\"metadata\":{\"uid\":\"0ef2\"},"
	                           "\"device\":{\"name\":\"box\",\"uid\":\"77\"}}";
	static const struct {
		struct audit_pick pick;
		bool is;
	} picks[] = {
	        {{.since_ms = INT64_MIN}, true},
	        {{.since_ms = 5}, true},
	        {{.since_ms = 6}, false},
	        {{.sandbox = "box"}, true},
	        {{.sandbox = "77"}, true},
	        {{.sandbox = "bo"}, false},
	        {{.sandbox = ""}, false},
	        {{.event = "0ef2", .sandbox = "box", .since_ms = 5}, true},
	        {{.event = "0ef2", .sandbox = "other"}, false},
	        {{.event = "0ef", .sandbox = "box"}, false},
	};
	json_t *event = json_loads(line, 0, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(picks) / sizeof(picks[0]); i++)
		assert_int_equal(audit_pick_wants(&picks[i].pick, event), picks[i].is);
	json_decref(event);
}

static int set_path(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_audit.%d", getpid());
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_times),
	        cmocka_unit_test(test_lines_that_are_no_events),
	        cmocka_unit_test(test_attributes_of_wrong_types_are_nothing),
	        cmocka_unit_test(test_what_a_terminal_obeys_is_escaped),
	        cmocka_unit_test(test_a_request_without_a_host_shows_where_it_went),
	        cmocka_unit_test(test_a_connection_is_told_as_a_rule_names_it),
	        cmocka_unit_test(test_a_row_of_a_life_says_something),
	        cmocka_unit_test(test_a_credential_is_named_where_it_was_used),
	        cmocka_unit_test(test_an_event_is_found_by_its_id),
	        cmocka_unit_test(test_endless_texts_are_bounded),
	        cmocka_unit_test(test_table_fits_its_terminal),
	        cmocka_unit_test(test_what_does_not_fit_goes_on_in_the_next_line),
	        cmocka_unit_test(test_the_reason_is_there_at_any_width),
	        cmocka_unit_test(test_days_are_told_once),
	        cmocka_unit_test(test_color_only_where_wanted),
	        cmocka_unit_test(test_nothing_is_cut_in_a_pipe),
	        cmocka_unit_test(test_whole_log_verifies),
	        cmocka_unit_test(test_any_changed_byte_breaks_it),
	        cmocka_unit_test(test_removed_doubled_and_moved_lines_break_it),
	        cmocka_unit_test(test_two_chains_in_one_file_break_it),
	        cmocka_unit_test(test_anchor),
	        cmocka_unit_test(test_show_and_its_usage),
	        cmocka_unit_test(test_options_stand_before_and_behind_the_file),
	        cmocka_unit_test(test_a_file_or_a_daemon),
	        cmocka_unit_test(test_wrong_options),
	        cmocka_unit_test(test_what_is_picked),
	};

	return cmocka_run_group_tests(tests, set_path, remove_path);
}
