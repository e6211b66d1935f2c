/* vqa_contractions_tables.c - contractions that the VQA servers mend. One word a row: ^ is an
 * apostrophe that was left out and is put in, ' one that is there already, - one that is there and
 * goes. Those that cannot be met after lower case and the blank before 's are left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/vqa/vqa_questions.h"

/* clang-format off */
static const char *const contractions[] = {
    "ain^t", "aren^t", "can^t", "could^ve", "couldn^t", "couldn't^ve", "couldn^t've", "didn^t",
    "doesn^t", "don^t", "hadn^t", "hadn^t've", "hadn't^ve", "hasn^t", "haven^t", "he^d",
    "he^d've", "he'd^ve", "he^s", "how^d", "how^ll", "how^s", "isn^t", "it^d", "it^d've",
    "it'd^ve", "it^ll", "ma^am", "mightn^t", "mightn^t've", "mightn't^ve", "might^ve", "mustn^t",
    "must^ve", "needn^t", "not^ve", "o^clock", "oughtn^t", "'ow^s'at", "shan^t", "she^d've",
    "she'd^ve", "should^ve", "shouldn^t", "shouldn^t've", "shouldn't^ve", "somebody-d",
    "somebody^d've", "somebody'd^ve", "somebody^ll", "somebody^s", "someone^d", "someone^d've",
    "someone'd^ve", "someone^ll", "someone^s", "something^d", "something^d've", "something'd^ve",
    "something^ll", "that^s", "there^d", "there^d've", "there'd^ve", "there^re", "there^s",
    "they^d", "they^d've", "they'd^ve", "they^ll", "they^re", "they^ve", "^twas", "wasn^t",
    "we^d've", "we'd^ve", "we^ve", "weren^t", "what^ll", "what^re", "what^s", "what^ve",
    "when^s", "where^d", "where^s", "where^ve", "who^d", "who^d've", "who'd^ve", "who^ll",
    "who^s", "who^ve", "why^ll", "why^re", "why^s", "won^t", "would^ve", "wouldn^t",
    "wouldn^t've", "wouldn't^ve", "y^all", "y^all'll", "y'all^ll", "y^all'd've", "y'all^d've",
    "y'all'd^ve", "you^d", "you^d've", "you'd^ve", "you^ll", "you^re", "you^ve",
};
/* clang-format on */

static int is_met(const char *row, const char *word)
{
    for (; *row; row++) {
        if (*row == '^') continue;
        if (*word++ != (*row == '-' ? '\'' : *row)) return 0;
    }
    return !*word;
}

int ry_vqa_contraction(const char *word, char out[24])
{
    for (size_t i = 0; i < sizeof contractions / sizeof *contractions; i++) {
        if (!is_met(contractions[i], word)) continue;
        for (const char *row = contractions[i]; *row; row++)
            if (*row != '-') *out++ = *row == '^' ? '\'' : *row;
        *out = 0;
        return 1;
    }
    return 0;
}
