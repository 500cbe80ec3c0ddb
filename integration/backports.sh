#!/usr/bin/env bash
# Prints an apt source for this Debian's backports. It is the machine's own source of
# the release, with the same mirror, keyring and components, but for another suite.
# The first line is the file's name, the rest is the file's content. It needs the lists
# of an apt-get update. It fails if it finds no source of the release. install.sh runs
# it.
set -euo pipefail

codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

# apt itself reports the source of the release and the file that names it.
read -r site entry < <(
  apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(CREATED_BY) $(COMPONENT) $(SITE) $(SOURCESENTRY)' |
    awk -v name="$codename" '$1 " " $2 " " $3 " " $4 == "Debian " name " Packages main" {print $5, $6; exit}'
) || { echo "no apt source of this machine has Debian $codename main, so its backports are not known" >&2; exit 1; }
file=${entry%:*}

case $file in
*.sources) # stanzas of fields, with an empty line between them
  source=$(awk -v name="$codename" -v site="$site" 'BEGIN {RS = ""}
    index($0, site) && ("\n" $0 "\n") ~ ("\nSuites:([^\n]*[ \t])?" name "([ \t][^\n]*)?\n") {
      fields = split($0, field, "\n")
      for (i = 1; i <= fields; i++) {
        if (field[i] ~ /^Suites:/) field[i] = "Suites: " name "-backports"
        if (field[i] !~ /^#/) print field[i]
      }
      exit
    }' "$file")
  ;;
*) # one line: deb [options] site suite components
  source=$(awk -v name="$codename" -v site="$site" '$1 == "deb" && index($0, site) {
    for (i = 3; i <= NF; i++) if ($i == name) { $i = name "-backports"; print; exit }
  }' "$file")
  ;;
esac
if [ -z "$source" ]; then
  echo "$file is not understood: which of its entries is $codename from $site?" >&2
  exit 1
fi
printf '%s\n%s\n' "$codename-backports.${file##*.}" "$source"
