"""The search for a coalition that gains: renters, owners and a client who are one person, who do
anything that a command lets them do, under any tariff and policy that the profit bound lets pass.
"""
