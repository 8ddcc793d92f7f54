/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets: when the server is asked, and what its answers mean for the lease. The server is played
 * by answers that a test makes; the script itself runs in tests/integration/test_quota.py. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "quota/budget.h"
#include "quota/server_fault.h"

#define AMOUNT 1000
#define PERIOD_S 3600
#define PART_MS 60000
#define NAME "0123456789012345678901234567890123456789012345678901234567890123"

static const uint8_t key[QUOTAS_KEY] = {1};
static struct quotas quotas;
static struct budget budget;
static struct server_clock server_clock;
static int64_t now_ms;

static int begin(void **state)
{
	struct message_quota_budget message = {
	        .period_s = PERIOD_S, .amount = AMOUNT, .name = SLICE(NAME)};

	(void)state;
	now_ms = 1000000;
	server_clock = (struct server_clock){0};
	assert_int_equal(quotas_open(&quotas, quotas_create(), -1), 0);
	assert_int_equal(quotas_prepare(&quotas, 2), 0);
	message.index = quotas_place(&quotas, key, PERIOD_S * 1000, AMOUNT);
	budget_init(&budget, &quotas, &message, now_ms);
	quotas_beat(&quotas, now_ms);
	return 0;
}

static int end(void **state)
{
	(void)state;
	quotas_close(&quotas);
	return 0;
}

static void answer(int64_t part, int64_t into_ms, uint64_t granted, uint64_t room, int64_t wait_ms)
{
	const struct script_answer a = {part, into_ms, granted, room, wait_ms, 1};

	budget_answered(&budget, &a, &server_clock, now_ms);
}

static uint64_t claimed(int64_t part)
{
	int64_t kept;
	uint64_t amount = quotas_claim(&quotas, 0, (uint64_t)part % QUOTAS_CLAIMS, &kept);

	return kept == part ? amount : 0;
}

/* The first question only tells the time; then a worker's wish is asked for. */
static void begin_with(uint64_t wanted, uint64_t granted)
{
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(budget.question.need + budget.question.extra, 0);
	answer(100, 0, 0, AMOUNT, 0);
	assert_false(quotas_take(&quotas, 0, now_ms, wanted));
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(budget.question.need, wanted);
	answer(100, 0, granted, AMOUNT - granted, granted < wanted ? 5000 : 0);
}

static void test_a_grant(void **state)
{
	(void)state;
	begin_with(10, 12);
	assert_int_equal(claimed(100), 12);
	assert_true(quotas_take(&quotas, 0, now_ms, 10));
	assert_int_equal(quotas_left(&quotas, 0, now_ms), 2);
	assert_int_equal(quotas_state(&quotas, 0), QUOTA_OPEN);
	assert_int_equal(quotas_used_by_all(&quotas, 0), 12);
	/* It lasts until the end of the next part, and less than that by the clock. */
	assert_int_equal(quotas_left(&quotas, 0, now_ms + 2 * PART_MS), 0);
	assert_int_equal(quotas_left(&quotas, 0, now_ms + 2 * PART_MS - 200), 2);
}

static void test_used_up(void **state)
{
	(void)state;
	begin_with(10, 4);
	assert_int_equal(quotas_state(&quotas, 0), QUOTA_USED_UP);
	assert_int_equal(quotas_wait_ms(&quotas, 0, now_ms), 5000);
	assert_false(quotas_take(&quotas, 0, now_ms, 10));
	assert_false(budget_look(&budget, &server_clock, now_ms)); /* not at once */
	now_ms += BUDGET_AGAIN_MS;
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(budget.question.need, 6);
	answer(100, 1000, 6, 0, 0);
	assert_true(quotas_take(&quotas, 0, now_ms, 10));
	assert_int_equal(claimed(100), 10);
}

/* What is left of a lease when the next part has begun goes back with the next question. */
static void test_the_next_part(void **state)
{
	(void)state;
	begin_with(10, 30);
	now_ms += PART_MS;
	assert_true(quotas_take(&quotas, 0, now_ms, 10));
	assert_true(budget_look(&budget, &server_clock, now_ms));
	answer(101, 0, 5, AMOUNT - 35, 0);
	assert_int_equal(quotas_left(&quotas, 0, now_ms), 5);
	assert_int_equal(claimed(100), 10);
	assert_int_equal(claimed(101), 5);
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(budget.question.claim_count, 2);
}

static void test_idle(void **state)
{
	(void)state;
	begin_with(10, 30);
	assert_true(quotas_take(&quotas, 0, now_ms, 10));
	now_ms += 1000; /* what is taken is measured each second */
	budget_look(&budget, &server_clock, now_ms);
	now_ms += BUDGET_IDLE_MS + 1;
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(budget.question.need + budget.question.extra, 0);
	assert_int_equal(quotas_left(&quotas, 0, now_ms), 0);
	assert_int_equal(claimed(100), 10);
	answer(100, 7000, 0, AMOUNT - 10, 0);
	now_ms += 100;
	assert_false(budget_look(&budget, &server_clock, now_ms));
}

static void test_a_lease_that_ended(void **state)
{
	(void)state;
	begin_with(10, 30);
	assert_true(quotas_take(&quotas, 0, now_ms, 10));
	now_ms += 3 * PART_MS;
	assert_false(quotas_take(&quotas, 0, now_ms, 1));
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(claimed(100), 10);
	assert_int_equal(budget.question.need, 1);
}

/* What passed while the server was away is claimed once it answers. */
static void test_away_and_back(void **state)
{
	(void)state;
	begin_with(10, 10);
	assert_true(quotas_take(&quotas, 0, now_ms, 10));
	budget_away(&budget);
	assert_true(quotas_are_away(&quotas, 0, now_ms));
	quotas_owe(&quotas, 0, 25);
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(claimed(100), 35);
	assert_int_equal(quotas_owed(&quotas, 0), 0);
	answer(100, 0, 0, AMOUNT - 35, 0);
	assert_false(quotas_are_away(&quotas, 0, now_ms));
}

/* An answer that never came changes nothing: the next question claims what is known here. */
static void test_a_lost_answer(void **state)
{
	(void)state;
	begin_with(10, 10);
	assert_false(quotas_take(&quotas, 0, now_ms, 20));
	assert_true(budget_look(&budget, &server_clock, now_ms));
	budget_away(&budget);
	assert_true(budget_look(&budget, &server_clock, now_ms));
	assert_int_equal(budget.question.claim_count, 1);
	assert_int_equal(budget.claims[0].amount, 10);
}

static void test_a_clock_that_goes_back(void **state)
{
	(void)state;
	begin_with(10, 10);
	assert_true(budget_look(&budget, &server_clock, now_ms) || true);
	answer(50, 0, 3, AMOUNT - 13, 0);
	assert_int_equal(claimed(100), 0);
	assert_true(claimed(50) >= 3);
	assert_int_equal(quotas_left(&quotas, 0, now_ms), 3);
}

static void test_the_end(void **state)
{
	(void)state;
	begin_with(10, 30);
	budget_end(&budget);
	assert_int_equal(quotas_left(&quotas, 0, now_ms), 0);
	assert_int_equal(claimed(100), 0);
	assert_true(budget_look(&budget, &server_clock, now_ms));
	answer(100, 0, 0, AMOUNT, 0);
	assert_false(budget_look(&budget, &server_clock, now_ms));
}

static void test_command(void **state)
{
	const struct script_claim claims[] = {{100, 7}, {101, QUOTAS_AMOUNT_MAX}};
	const struct script_question q = {.name = NAME,
	        .host = "0011223344556677.0",
	        .amount = AMOUNT,
	        .part_ms = PART_MS,
	        .need = 5,
	        .extra = 6,
	        .claim_count = 2,
	        .claims = claims};
	char *command = NULL;
	size_t n = script_command(&q, &command);

	(void)state;
	assert_true(n > 0 && n < 8192);
	assert_memory_equal(command, "*16\r\n$4\r\nEVAL\r\n", 15);
	assert_non_null(strstr(command, "\r\n$82\r\nvethguard:quota:{" NAME "}\r\n"));
	assert_non_null(strstr(command, "\r\n$13\r\n1099511627775\r\n"));
	redisFreeCommand(command);
}

static struct script_answer read_back;

static bool reads(const int64_t numbers[6], enum reply_kind kind, size_t count)
{
	const struct script_question q = {
	        .amount = AMOUNT, .part_ms = PART_MS, .need = 5, .extra = 6};
	struct reply reply = {.kind = kind, .count = count};

	memcpy(reply.numbers, numbers, 6 * sizeof(*numbers));
	return script_read(&q, &reply, &read_back);
}

static void test_answers(void **state)
{
	const int64_t good[6] = {100, 59999, 11, AMOUNT, 0, 1};
	const struct {
		size_t at;
		int64_t value;
	} wrong[] = {{0, -1}, {0, INT64_MAX}, {1, -1}, {1, PART_MS}, {2, -1}, {2, 12}, {3, -1},
	        {3, AMOUNT + 1}, {4, -2}, {4, INT64_MAX}, {5, -1}};

	(void)state;
	assert_true(reads(good, REPLY_LIST, 6));
	assert_int_equal(read_back.granted, 11);
	assert_false(reads(good, REPLY_LIST, 5));
	assert_false(reads(good, REPLY_LIST, 7));
	assert_false(reads(good, REPLY_TEXT, 6));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int64_t bad[6];

		memcpy(bad, good, sizeof(bad));
		bad[wrong[i].at] = wrong[i].value;
		assert_false(reads(bad, REPLY_LIST, 6));
	}
}

/* The server's own words are never shown: it knows the password. */
static void test_faults(void **state)
{
	char out[SERVER_WHY_MAX];

	(void)state;
	assert_non_null(
	        strstr(server_fault_text("WRONGPASS invalid hunter2", out), "refuses user"));
	assert_non_null(strstr(server_fault_text("LOADING", out), "loads its data"));
	assert_non_null(strstr(server_fault_text("MOVED 3999 127.0.0.1:6381", out), "cluster"));
	assert_null(strstr(server_fault_text("hunter2 hunter2", out), "hunter2"));
	assert_null(strstr(server_fault_text("", out), "hunter2"));
	assert_null(strstr(server_fault_text("LOADINGhunter2", out), "hunter2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_a_grant, begin, end),
	        cmocka_unit_test_setup_teardown(test_used_up, begin, end),
	        cmocka_unit_test_setup_teardown(test_the_next_part, begin, end),
	        cmocka_unit_test_setup_teardown(test_idle, begin, end),
	        cmocka_unit_test_setup_teardown(test_a_lease_that_ended, begin, end),
	        cmocka_unit_test_setup_teardown(test_away_and_back, begin, end),
	        cmocka_unit_test_setup_teardown(test_a_lost_answer, begin, end),
	        cmocka_unit_test_setup_teardown(test_a_clock_that_goes_back, begin, end),
	        cmocka_unit_test_setup_teardown(test_the_end, begin, end),
	        cmocka_unit_test(test_command), cmocka_unit_test(test_answers),
	        cmocka_unit_test(test_faults)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
