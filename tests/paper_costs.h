/* paper_costs.h - the GFLOPs of the paper's settings, to three decimals: what test_cost.c computes
 * from token counts and test_policy_cost.c from policy texts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_PAPER_COSTS_H
#define RENYI_TESTS_PAPER_COSTS_H

#include <math.h>
#include <stdint.h>

typedef enum size_name { VIT_S, VIT_B, VIT_L } size_name;

typedef enum mode { DENSE, EARLY, ALL } mode;

/* p tokens removed in blocks 0-5 (EARLY) or in every block (ALL). */
static const struct naive_row {
    size_name model;
    mode where;
    uint32_t p, last;
    double mid, mid_norm, end, mid_without_attention;
} naive_rows[] = {
    {VIT_S, DENSE, 0, 197, 4.599, 4.608, 4.599, 4.241},
    {VIT_S, EARLY, 4, 173, 4.151, 4.160, 4.180, 3.852},
    {VIT_S, EARLY, 8, 149, 3.710, 3.718, 3.767, 3.463},
    {VIT_S, EARLY, 12, 125, 3.276, 3.283, 3.361, 3.073},
    {VIT_S, EARLY, 16, 101, 2.848, 2.854, 2.961, 2.684},
    {VIT_S, EARLY, 20, 77, 2.427, 2.432, 2.569, 2.295},
    {VIT_S, EARLY, 24, 53, 2.013, 2.017, 2.183, 1.906},
    {VIT_S, ALL, 2, 173, 4.299, 4.307, 4.327, 3.979},
    {VIT_S, ALL, 4, 149, 4.001, 4.010, 4.058, 3.717},
    {VIT_S, ALL, 6, 125, 3.707, 3.715, 3.792, 3.456},
    {VIT_S, ALL, 8, 101, 3.416, 3.424, 3.530, 3.194},
    {VIT_S, ALL, 10, 77, 3.129, 3.135, 3.270, 2.932},
    {VIT_S, ALL, 12, 53, 2.844, 2.850, 3.014, 2.670},
    {VIT_B, DENSE, 0, 197, 17.564, 17.583, 17.564, 16.849},
    {VIT_B, EARLY, 4, 173, 15.890, 15.907, 16.003, 15.291},
    {VIT_B, EARLY, 8, 149, 14.229, 14.245, 14.456, 13.734},
    {VIT_B, EARLY, 12, 125, 12.582, 12.596, 12.922, 12.177},
    {VIT_B, EARLY, 16, 101, 10.948, 10.960, 11.401, 10.620},
    {VIT_B, EARLY, 20, 77, 9.327, 9.338, 9.894, 9.063},
    {VIT_B, EARLY, 24, 53, 7.720, 7.728, 8.400, 7.506},
    {VIT_B, ALL, 2, 173, 16.440, 16.457, 16.553, 15.801},
    {VIT_B, ALL, 4, 149, 15.321, 15.338, 15.548, 14.753},
    {VIT_B, ALL, 6, 125, 14.210, 14.225, 14.549, 13.706},
    {VIT_B, ALL, 8, 101, 13.104, 13.118, 13.557, 12.658},
    {VIT_B, ALL, 10, 77, 12.004, 12.017, 12.571, 11.611},
    {VIT_B, ALL, 12, 53, 10.911, 10.923, 11.591, 10.563},
    {VIT_L, DENSE, 0, 197, 61.555, 61.604, 61.555, 59.647},
    {VIT_L, EARLY, 8, 149, 48.069, 48.107, 48.471, 46.863},
    {VIT_L, EARLY, 16, 101, 34.767, 34.795, 35.572, 34.079},
    {VIT_L, EARLY, 24, 53, 21.649, 21.667, 22.857, 21.294},
    {VIT_L, ALL, 2, 149, 53.796, 53.840, 54.199, 52.299},
    {VIT_L, ALL, 4, 101, 46.109, 46.146, 46.914, 44.950},
    {VIT_L, ALL, 6, 53, 38.492, 38.523, 39.700, 37.602},
};

/* Share r of the patches kept at three blocks; the rest fused into one token. */
static const struct evit_row {
    size_name model;
    double r;
    uint32_t cuts[3], tokens[3];
    double fused, fused_norm, dropped_norm;
} evit_rows[] = {
    {VIT_S, 0.7, {0, 3, 6}, {140, 100, 72}, 2.288, 2.293, 2.244},
    {VIT_S, 0.7, {1, 4, 7}, {140, 100, 72}, 2.535, 2.541, 2.497},
    {VIT_S, 0.7, {2, 5, 8}, {140, 100, 72}, 2.782, 2.788, 2.750},
    {VIT_S, 0.7, {3, 6, 9}, {140, 100, 72}, 3.029, 3.036, 3.003},
    {VIT_S, 0.7, {4, 7, 10}, {140, 100, 72}, 3.276, 3.283, 3.256},
    {VIT_S, 0.8, {0, 3, 6}, {159, 129, 105}, 2.925, 2.931, 2.880},
    {VIT_S, 0.8, {3, 6, 9}, {159, 129, 105}, 3.477, 3.484, 3.451},
    {VIT_S, 0.9, {0, 3, 6}, {179, 163, 148}, 3.723, 3.731, 3.679},
    {VIT_S, 0.9, {3, 6, 9}, {179, 163, 148}, 4.022, 4.030, 3.996},
    {VIT_B, 0.7, {0, 3, 6}, {140, 100, 72}, 8.801, 8.810, 8.620},
    {VIT_B, 0.7, {3, 6, 9}, {140, 100, 72}, 11.610, 11.622, 11.498},
    {VIT_B, 0.8, {0, 3, 6}, {159, 129, 105}, 11.245, 11.257, 11.065},
    {VIT_B, 0.8, {3, 6, 9}, {159, 129, 105}, 13.327, 13.341, 13.215},
    {VIT_B, 0.9, {0, 3, 6}, {179, 163, 148}, 14.277, 14.292, 14.097},
    {VIT_B, 0.9, {3, 6, 9}, {179, 163, 148}, 15.395, 15.412, 15.284},
};

/* true when `macs`, written in G with three decimals, reads like `want`. */
static int reads(double macs, double want) { return fabs(macs / 1e9 - want) <= 0.0005 + 1e-9; }

#endif
