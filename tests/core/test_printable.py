import json

from nongauss.core.printable import printable


def test_nothing_steers_a_terminal_and_lines_stay_lines():
    assert printable("a\tb\nc ä € 日本") == "a\tb\nc ä € 日本"
    assert printable("\x1b[2J\x9b\x07\r\u202e") == "\\u001b[2J\\u009b\\u0007\\u000d\\u202e"


def test_json_stays_the_same_data():
    data = {"name": "\x9b1m \x7f \u202e"}
    assert json.loads(printable(json.dumps(data, ensure_ascii=False))) == data
