# run_logs.sh - logs of training runs as they might be, for tests of renyi plot; sourced, not run.
# SPDX-License-Identifier: Apache-2.0

# make_run FOLDER SEED START END TOP1 POLICY [EPOCHS [STEPS_PER_EPOCH]]: a loss that falls with noise from
# START towards END, and accuracies that rise to TOP1.
make_run() {
  mkdir -p "$1"
  awk -v seed="$2" -v start="$3" -v end="$4" -v top="$5" -v policy="$6" -v epochs="${7:-30}" -v steps="${8:-200}" 'BEGIN {
    srand(seed)
    printf "{\"kind\":\"config\",\"arch\":\"vit_small_patch16_224\",\"policy\":\"%s\",\"steps_per_epoch\":%d,\"epochs\":%d}\n", policy, steps, epochs
    for (e = 0; e < epochs; e++) {
      sum = 0
      for (s = 1; s <= steps; s++) {
        n = e * steps + s
        t = n / (epochs * steps)
        loss = end + (start - end) * exp(-4 * t) + 0.12 * (rand() + rand() + rand() - 1.5)
        sum += loss
        printf "{\"kind\":\"step\",\"epoch\":%d,\"step\":%d,\"loss\":%.6f,\"lr\":%.9f,\"keep\":%.4f,\"images_per_second\":%.2f,\"seconds\":%.2f}\n", \
          e, n, loss, 2e-5 * (1 + cos(3.14159 * t)) / 2, t < 0.2 ? 1 - 1.5 * t : 0.7, 60 + 4 * rand(), n * 1.7
      }
      t = (e + 1) / epochs
      printf "{\"kind\":\"epoch\",\"epoch\":%d,\"step\":%d,\"train_loss\":%.6f,\"val_loss\":%.6f,\"val_top1\":%.3f,\"val_top5\":%.3f,\"seconds\":%.2f}\n", \
        e, n, sum / steps, end * 0.55 + 0.6 * exp(-3 * t), top - 9 * exp(-3.5 * t) + 0.5 * rand(), 94 - 4 * exp(-3 * t), n * 1.7 + 20
    }
  }' >"$1/log.jsonl"
}
