#!/bin/sh
# Builds MenuSansSC-Regular.otf from Noto Sans CJK SC Regular.
# It needs Debian's packages fonts-noto-cjk, unicode-data and fonttools.
# README.md says what is kept and why.
set -eu
cd "$(dirname "$0")"

ttc=${1:-/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc}
unihan=${2:-/usr/share/unicode}
python=/usr/bin/python3 # where Debian's fonttools is
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Han characters: GB 2312, the General Standard Chinese Characters, Big Five's
# first level, Japan's joyo kanji, and the International Ideographs Core.
bzcat "$unihan"/Unihan_*.txt.bz2 |
	awk '$2 ~ /^(kGB0|kTGH|kJoyoKanji|kIICore)$/ || ($2 == "kBigFive" && $3 <= "C67E") { print substr($1, 3) }' |
	sort -u >"$tmp/unicodes"
# Hangul: the 2350 syllables of KS X 1001.
$python -c 'for a in range(0xB0, 0xC9):
    for b in range(0xA1, 0xFF): print("%04X" % ord(bytes([a, b]).decode("euc_kr")))' >>"$tmp/unicodes"
# All else by block: Latin, Greek, Cyrillic, punctuation, currency, letterlike,
# number forms, arrows, mathematics, technical signs, enclosed numbers, lines,
# shapes, symbols, CJK symbols, kana, bopomofo, units, vertical and wide forms.
cat >>"$tmp/unicodes" <<'END'
0020-007E
00A0-024F
0300-036F
0370-03FF
0400-04FF
0250-02FF
1E00-1EFF
2000-206F
20A0-20CF
2100-218F
2190-21FF
2200-22FF
2300-23FF
2460-257F
25A0-25FF
2600-27BF
3000-303F
3040-30FF
3100-312F
3200-33FF
FE30-FE4F
FF00-FFEF
END

pyftsubset "$ttc" --font-number=2 --unicodes-file="$tmp/unicodes" \
	--output-file="$tmp/subset.otf" \
	--layout-features=kern --no-hinting --desubroutinize \
	--notdef-outline --name-IDs='*' --name-languages=0x409 \
	--drop-tables+=vhea,vmtx,VORG,BASE,GSUB,DSIG

$python - "$tmp/subset.otf" MenuSansSC-Regular.otf <<'END'
# A modified font gets a name of its own; copyright and licence stay as they are.
import sys
from fontTools.ttLib import TTFont
font = TTFont(sys.argv[1], recalcTimestamp=False)
names = {1: "Menu Sans SC", 3: "MenuSansSC-Regular; from Noto Sans CJK SC 2.004", 4: "Menu Sans SC Regular", 6: "MenuSansSC-Regular"}
for record in list(font["name"].names):
    if record.nameID in (16, 17, 21, 22, 25):
        font["name"].names.remove(record)
for name_id, text in names.items():
    font["name"].setName(text, name_id, 3, 1, 0x409)
cff = font["CFF "].cff
cff.fontNames = ["MenuSansSC-Regular"]
top = cff[0]
top.FullName, top.FamilyName = "Menu Sans SC Regular", "Menu Sans SC"
font.save(sys.argv[2])
END
ls -l MenuSansSC-Regular.otf
