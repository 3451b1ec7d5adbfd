// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {Guarded} from "./Guarded.sol";
import {TallyToken} from "./TallyToken.sol";

/// @title The mint side of burn and mint.
/// @notice One mint per closed epoch, in order, to one receiver that can never change, and never above
///
///     ceiling(e) = cap(e) + min(recyclable, recycleCap)
///
/// where `recyclable` is a running pool: burns add to it, a mint takes max(0, amount - cap(e)) out.
/// Epochs count from 1 as in the ledger; epoch e covers
/// [genesis + (e - 1) * epochLength, genesis + e * epochLength). An epoch without rewards mints 0.
/// @dev Invariants: minted(e) <= ceiling(e), and
/// sum of max(0, minted(e) - cap(e)) + recyclable = sum of recorded burns.
contract EmissionController is Guarded {
    using SafeCast for uint256;

    /// @notice May mint an epoch.
    bytes32 public constant EMITTER_ROLE = keccak256("EMITTER_ROLE");
    /// @notice May report burns. Held by the CreditBurner; without it purchases revert.
    bytes32 public constant BURN_REPORTER_ROLE = keccak256("BURN_REPORTER_ROLE");

    /// @notice The token minted.
    TallyToken public immutable token;
    /// @notice Where every mint goes: the RewardsDistributor.
    address public immutable receiver;
    /// @notice Start of epoch 1, Unix seconds.
    uint64 public immutable genesis;
    /// @notice Seconds per epoch.
    uint64 public immutable epochLength;
    /// @notice Epochs per period of the schedule.
    uint64 public immutable epochsPerPeriod;
    /// @notice Most that one epoch may mint out of the recycled pool, token units.
    uint256 public immutable recycleCap;

    /// @notice The epoch that is minted next. Shares its slot with `recyclable`.
    uint64 public nextEpoch = 1;
    /// @notice Burned and not minted again yet, token units.
    uint128 public recyclable;
    /// @notice Burned per epoch, token units: for reconciliation only, no ceiling depends on it.
    mapping(uint64 epoch => uint256 amount) public burnedIn;
    /// @dev Cap per epoch for each period; zero after the last.
    uint256[] private _periodCaps;

    /// @notice An epoch was minted.
    /// @param settlementId SHA-256 of the epoch file that says who earned it.
    event EpochMinted(uint64 indexed epoch, uint256 amount, uint256 ceiling, bytes32 indexed settlementId);
    /// @notice Tokens were burned for credits during `epoch`.
    event BurnRecorded(uint64 indexed epoch, uint256 amount);

    /// @notice Epochs are minted in order, each once.
    error EpochOutOfOrder(uint64 expected, uint64 got);
    /// @notice The epoch ends later than now.
    error EpochNotClosed(uint64 closesAt, uint256 nowS);
    /// @notice More than the schedule and the recycled pool allow.
    error CapExceeded(uint256 ceiling, uint256 got);
    /// @notice A schedule needs an epoch length, a period length and at least one cap.
    error BadSchedule(uint64 epochLength, uint64 epochsPerPeriod, uint256 periods);

    /// @param token_ The token; this contract needs its MINTER_ROLE.
    /// @param receiver_ Receives every mint.
    /// @param admin First admin.
    /// @param adminDelayS Seconds between the two steps of a transfer of the admin role.
    /// @param genesis_ Start of epoch 1, Unix seconds.
    /// @param epochLength_ Seconds per epoch.
    /// @param epochsPerPeriod_ Epochs per entry of `periodCaps`.
    /// @param recycleCap_ Most that one epoch may re-mint, token units.
    /// @param periodCaps Cap per epoch in each period, token units.
    constructor(
        TallyToken token_,
        address receiver_,
        address admin,
        uint48 adminDelayS,
        uint64 genesis_,
        uint64 epochLength_,
        uint64 epochsPerPeriod_,
        uint256 recycleCap_,
        uint256[] memory periodCaps
    ) Guarded(admin, adminDelayS) {
        require(
            epochLength_ != 0 && epochsPerPeriod_ != 0 && periodCaps.length != 0,
            BadSchedule(epochLength_, epochsPerPeriod_, periodCaps.length)
        );
        _notZero(address(token_), "token");
        (token, receiver) = (token_, _notZero(receiver_, "receiver"));
        (genesis, epochLength, epochsPerPeriod) = (genesis_, epochLength_, epochsPerPeriod_);
        recycleCap = recycleCap_;
        _periodCaps = periodCaps;
    }

    /// @notice The epoch that runs now; 1 before genesis.
    function currentEpoch() public view returns (uint64) {
        if (block.timestamp < genesis) return 1;
        return uint64((block.timestamp - genesis) / epochLength) + 1;
    }

    /// @notice What the schedule alone allows for `epoch`, token units.
    function cap(uint64 epoch) public view returns (uint256) {
        if (epoch == 0) return 0;
        uint256 period = (epoch - 1) / epochsPerPeriod;
        return period < _periodCaps.length ? _periodCaps[period] : 0;
    }

    /// @notice The most that could be minted for `epoch` if it were minted now, token units.
    function ceiling(uint64 epoch) public view returns (uint256) {
        uint256 pool = recyclable;
        return cap(epoch) + (pool < recycleCap ? pool : recycleCap);
    }

    /// @notice Adds a burn to the recycled pool.
    /// @param amount Token units that were burned in this same transaction.
    function recordBurn(uint256 amount) external onlyRole(BURN_REPORTER_ROLE) {
        uint64 epoch = currentEpoch();
        recyclable += amount.toUint128();
        burnedIn[epoch] += amount;
        emit BurnRecorded(epoch, amount);
    }

    /// @notice Mints what a closed epoch's recipients earned.
    /// @param epoch Must be `nextEpoch`.
    /// @param amount Token units; 0 for an epoch without rewards.
    /// @param settlementId SHA-256 of the epoch file.
    function mintEpoch(uint64 epoch, uint256 amount, bytes32 settlementId)
        external
        onlyRole(EMITTER_ROLE)
        whenNotPaused
    {
        require(epoch == nextEpoch, EpochOutOfOrder(nextEpoch, epoch));
        uint64 closesAt = genesis + epoch * epochLength;
        require(block.timestamp >= closesAt, EpochNotClosed(closesAt, block.timestamp));
        uint256 top = ceiling(epoch);
        require(amount <= top, CapExceeded(top, amount));
        uint256 scheduled = cap(epoch);
        nextEpoch = epoch + 1;
        if (amount > scheduled) recyclable -= uint128(amount - scheduled); // at most min(recyclable, recycleCap)
        emit EpochMinted(epoch, amount, top, settlementId);
        token.mint(receiver, amount);
    }
}
