"""What is concluded of a pass: functions of frozen records, which import no torch."""
