# Functions that models know from jq, where jaq has none or another one.

# Rows of tables.
def cell(row; string):
  if isstring then string
  elif isnumber or isboolean then tojson
  elif . == null then ""
  else error("\(type) cannot be in a row of \(row)") end;
def @csv: map(cell("@csv"; "\"" + gsub("\""; "\"\"") + "\"")) | join(",");
def @tsv:
  def escaped: gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r");
  map(cell("@tsv"; escaped)) | join("\t");

# Entries by each of the names that jq takes for a key and a value.
def from_entries:
  def named($names; $entry): first($names[] | select(. as $name | $entry | has($name)) | $entry[.]), null;
  reduce .[] as $entry ({};
    first(named(["key", "k", "name", "Name", "Key", "K"]; $entry)) as $key
    | first(named(["value", "v", "Value", "V"]; $entry)) as $value
    | . + { ($key | if isstring then . else tojson end): $value });

# Deleting. The other keys keep their order, and the places of an array are those before anything was deleted.
def delpaths($paths):
  def drop($tails):
    if isobject then
      (reduce $tails[] as $tail ({}; .[$tail[0]] += [$tail[1:]])) as $rests
      | with_entries(
          .key as $key
          | if $rests | has($key) | not then .
            elif any($rests[$key][]; length == 0) then empty
            else .value |= drop($rests[$key]) end)
    elif isarray then
      reduce ($tails[] | select(length > 1)) as $tail (.; .[$tail[0]] |= drop([$tail[1:]]))
      | reduce ([$tails[] | select(length == 1) | .[0]] | unique | reverse[]) as $place (.; .[$place] |= empty)
    else . end;
  if any($paths[]; length == 0) then null else drop($paths) end;
def del(f): delpaths([path(f)]);

# A part of a value: arrays stay arrays.
def pick(f):
  def put($path; $value):
    if $path == [] then $value else
      $path[0] as $place
      | if . == null then (if $place | isnumber then [] else {} end) else . end
      | if isarray and $place >= length
        then . + [range(length; $place) | null] + [null | put($path[1:]; $value)]
        else (.[$place] | put($path[1:]; $value)) as $new | .[$place] = $new end
    end;
  . as $top | reduce path(f) as $path (null; put($path; $top | getpath($path)));

# Paths and streams.
def leaf_paths: paths(scalars);
def tostream:
  def steps($path):
    if (isarray or isobject) and length > 0
    then keys_unsorted as $keys
      | (. as $value | $keys[] as $key | $value[$key] | steps($path + [$key])), [$path + [$keys[-1]]]
    else [$path, .] end;
  steps([]);

# Searching, as in SQL.
def IN(source): . as $value | any(source; . == $value);
def IN(source; wanted): any(source; IN(wanted));
def INDEX(source; key): reduce source as $row ({}; . + { ($row | key | tostring): $row });
def INDEX(key): INDEX(.[]; key);

def toarray: if isarray then . else [.] end;
def trimstr($text): ltrimstr($text) | rtrimstr($text);
def ascii: [.] | implode;
def date: todate;
