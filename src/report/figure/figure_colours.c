/* figure_colours.c - colour maps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/viz.h"

#include <math.h>

enum { STOPS = 33 };

/* A path through CIELAB (violet, blue, teal, green, yellow) on which lightness rises all the way,
 * cut into 32 steps of equal length: equal differences of a score look equally large, in grey
 * and to people who see few colours too. */
static const uint8_t even[STOPS][3] = {
    {40, 20, 83},    {49, 30, 101},  {55, 43, 119},   {56, 57, 133},   {53, 69, 144},
    {49, 80, 151},   {43, 90, 157},  {36, 99, 161},   {28, 108, 164},  {20, 116, 165},
    {13, 124, 165},  {6, 131, 165},  {1, 138, 163},   {0, 146, 162},   {5, 153, 160},
    {18, 160, 158},  {30, 167, 155}, {42, 174, 152},  {56, 181, 148},  {70, 188, 143},
    {85, 194, 137},  {99, 199, 131}, {112, 204, 125}, {126, 209, 118}, {139, 214, 111},
    {153, 218, 104}, {168, 221, 98}, {182, 225, 91},  {196, 228, 84},  {210, 232, 77},
    {225, 236, 71},  {241, 240, 66}, {255, 245, 62},
};

/* Likewise from blue over light grey to red. */
static const uint8_t red_blue[STOPS][3] = {
    {0, 66, 163},    {0, 77, 172},    {0, 88, 180},    {0, 99, 189},    {2, 111, 197},
    {34, 122, 203},  {57, 133, 208},  {75, 143, 212},  {92, 153, 216},  {107, 164, 219},
    {123, 173, 222}, {140, 183, 224}, {156, 192, 225}, {171, 200, 226}, {186, 207, 224},
    {199, 208, 218}, {208, 205, 208}, {214, 199, 196}, {219, 193, 184}, {223, 185, 172},
    {227, 178, 160}, {229, 170, 148}, {230, 161, 136}, {231, 152, 124}, {230, 141, 113},
    {228, 130, 102}, {225, 118, 92},  {222, 105, 81},  {217, 91, 71},   {208, 75, 59},
    {192, 59, 47},   {174, 43, 37},   {157, 27, 28},
};

void renyi_colour(renyi_colours map, double t, uint8_t rgb[3])
{
    const uint8_t(*stops)[3] = map == RENYI_COLOURS_RED_BLUE ? red_blue : even;
    const double at = t > 0 ? (t < 1 ? t : 1) * (STOPS - 1) : 0; /* NaN: the lower end */
    const int i = at < STOPS - 1 ? (int)at : STOPS - 2;
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)lround(stops[i][c] + (stops[i + 1][c] - stops[i][c]) * (at - i));
}
