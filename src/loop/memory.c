/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: for each descriptor ever watched, libevent keeps a record of 24 bytes, made
 * when the descriptor is first used and freed only with the event base. In the common heap the
 * records of five thousand connections lay one per page among freed connection objects. So none of
 * that memory could go back to the system (15 MB), and the objects of later connections were spread
 * over all of it, which cost a fifth of a request's time in address translation. Therefore
 * libevent's small pieces live in cells of their own address range.
 *
 * The range is reserved once and takes memory only as far as it is used. If it is full or could not
 * be reserved, malloc() is used.
 */
#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loop/private.h"

#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer would miss uses after such a free() */
#define CELL_BYTES 32u
#define CELLS 65536u

union cell {
	union cell *next_free;
	uint8_t bytes[CELL_BYTES];
};

static union cell *cells, *free_cells;
static size_t cells_begun;

static bool is_cell(const void *p)
{
	return cells && (uintptr_t)p >= (uintptr_t)cells &&
	       (uintptr_t)p < (uintptr_t)(cells + CELLS);
}

static void *take(size_t n)
{
	union cell *cell = free_cells;

	if (n > CELL_BYTES || !cells)
		return malloc(n);
	if (cell)
		free_cells = cell->next_free;
	else if (cells_begun < CELLS)
		cell = &cells[cells_begun++];
	return cell ? (void *)cell : malloc(n);
}

static void give_back(void *p)
{
	union cell *cell = p;

	if (!is_cell(p)) {
		free(p);
		return;
	}
	cell->next_free = free_cells;
	free_cells = cell;
}

static void *resize(void *p, size_t n)
{
	void *larger;

	if (!is_cell(p))
		return p ? realloc(p, n) : take(n);
	if (n <= CELL_BYTES)
		return p;
	larger = malloc(n);
	if (!larger)
		return NULL;
	memcpy(larger, p, CELL_BYTES);
	give_back(p);
	return larger;
}

void loop_memory_init(void)
{
	void *p;

	if (cells)
		return;
	p = mmap(NULL, CELLS * sizeof(*cells), PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return;
	cells = p;
	event_set_mem_functions(take, resize, give_back);
}
size_t loop_cells_in_use(void)
{
	size_t n = cells_begun;

	for (const union cell *cell = free_cells; cell; cell = cell->next_free)
		n--;
	return n;
}

#else
void loop_memory_init(void)
{
}

size_t loop_cells_in_use(void)
{
	return 0;
}
#endif
