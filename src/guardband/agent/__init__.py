"""Agents in the user's own process, and the parts that live agents share with them."""

from guardband.agent.agent import Agent
from guardband.agent.agent_file import (
    AgentFile,
    check_setting_names,
    read_agent_file,
    write_agent_file,
)
from guardband.agent.awaiting import awaitable
from guardband.agent.budget import Budget, Spending
from guardband.agent.decision import Decision
from guardband.agent.engine import Engine
from guardband.agent.fleet import Fleet
from guardband.agent.futures import Past, run_ahead
from guardband.agent.group import AgentGroup
from guardband.agent.health import Alarm, AlarmLog, Health
from guardband.agent.hooks import Hooked, Hooks
from guardband.agent.inputs import as_batch, as_id, as_list, as_number, as_reward, reward_range
from guardband.agent.learned import Learned, MenuWidths
from guardband.agent.logs import Logs, learned, read_logs, recognised, widths_now
from guardband.agent.looked_at import LookedAt, Recognised
from guardband.agent.others import sets_of
from guardband.agent.outlook import (
    Help,
    Outlook,
    StuckWarning,
    Watch,
    blocked_features,
    listing,
    outlook_of,
)
from guardband.agent.protocol import BanditAgent
from guardband.agent.recall import Recalls
from guardband.agent.records import Absorbed, Awaited, KnownThen, Recall, Request, Verdict
from guardband.agent.requests import RequestReader
from guardband.agent.seen import remembered
from guardband.agent.warmup import ask_for_kernels, warm_up
from guardband.agent.weighed import Weighed

__all__ = [
    "Absorbed",
    "Agent",
    "AgentFile",
    "AgentGroup",
    "Alarm",
    "AlarmLog",
    "Awaited",
    "BanditAgent",
    "Budget",
    "Decision",
    "Engine",
    "Fleet",
    "Health",
    "Help",
    "Hooked",
    "Hooks",
    "KnownThen",
    "Learned",
    "Logs",
    "LookedAt",
    "MenuWidths",
    "Outlook",
    "Past",
    "Recall",
    "Recalls",
    "Recognised",
    "Request",
    "RequestReader",
    "Spending",
    "StuckWarning",
    "Verdict",
    "Watch",
    "Weighed",
    "as_batch",
    "as_id",
    "as_list",
    "as_number",
    "as_reward",
    "ask_for_kernels",
    "awaitable",
    "blocked_features",
    "check_setting_names",
    "learned",
    "listing",
    "outlook_of",
    "read_agent_file",
    "read_logs",
    "recognised",
    "remembered",
    "reward_range",
    "run_ahead",
    "sets_of",
    "warm_up",
    "widths_now",
    "write_agent_file",
]
